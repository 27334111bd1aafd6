"""The fetch sessions of one model broker: the partitions that each client requested, kept until a test drops them."""

from dataclasses import dataclass, field

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

Key = tuple[str, bytes, int]


@dataclass
class ModelFetchSession:
    epoch: int = 1
    wanted: dict[Key, FetchPartition] = field(default_factory=dict)


class ModelFetchSessions:
    def __init__(self) -> None:
        self.room = 1000
        self.sessions: dict[int, ModelFetchSession] = {}
        self._next_id = 100

    def take(self, request: FetchRequest) -> ErrorCode:
        """Checks a request against its session, and updates the session."""
        if request.session_epoch <= 0:
            self.sessions.pop(request.session_id, None)
            return ErrorCode.NONE
        session = self.sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        session.epoch += 1
        session.wanted |= _wanted(request)
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                del session.wanted[topic.topic, topic.topic_id, partition]
        return ErrorCode.NONE

    def topics(self, request: FetchRequest) -> list[FetchTopic]:
        """Everything that the session reads."""
        if request.session_epoch <= 0:
            return request.topics
        return [
            FetchTopic(topic=name, topic_id=topic_id, partitions=[partition])
            for (name, topic_id, _), partition in self.sessions[request.session_id].wanted.items()
        ]

    def answer(self, request: FetchRequest, responses: list[FetchableTopicResponse]) -> FetchResponse:
        """The first answer of a session names every partition, later ones only those that have changed."""
        if request.session_epoch > 0:
            news = [topic for topic in responses if any(map(_has_news, topic.partitions))]
            return FetchResponse(session_id=request.session_id, responses=news)
        if request.session_epoch < 0 or len(self.sessions) >= self.room:
            return FetchResponse(responses=responses)
        self._next_id += 1
        self.sessions[self._next_id] = ModelFetchSession(1, _wanted(request))
        return FetchResponse(session_id=self._next_id, responses=responses)


def _wanted(request: FetchRequest) -> dict[Key, FetchPartition]:
    return {
        (topic.topic, topic.topic_id, partition.partition): partition
        for topic in request.topics
        for partition in topic.partitions
    }


def _has_news(partition: PartitionData) -> bool:
    return bool(partition.error_code or partition.records)
