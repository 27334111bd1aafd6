"""A fetch session with one broker (KIP-227): the broker remembers what is fetched, so a request has only the changes.

The first fetch names every partition and has epoch 0. If the response has a session id, the next requests name only
partitions that were added, removed or have a new offset, with epochs that count from 1. The broker in turn leaves out
partitions that have not changed. If either side has lost the session (the broker has evicted it, a response never
came), the next fetch closes it and begins another.

Fetches of one session follow one another: the next may be sent when the last was answered or has failed. `Fetcher`
keeps one session for each leader.
"""

from collections.abc import Mapping
from typing import NamedTuple

from quire.client.offsets import TopicPartition
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

NO_SESSION = 0
FIRST_EPOCH = 0
LAST_EPOCH = -1  # closes the session, or fetches without one
EPOCH_MAX = 0x7FFFFFFF

SESSION_LOST = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
"""Errors of a whole fetch after which a new session helps."""


class Wanted(NamedTuple):
    """What to fetch from a partition next."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    max_bytes: int


class FetchSession:
    __slots__ = ("_epoch", "_known", "_session_id")

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._known: dict[TopicPartition, Wanted] = {}

    @property
    def open(self) -> bool:
        return self._session_id != NO_SESSION

    def fill(self, request: FetchRequest, wanted: Mapping[TopicPartition, Wanted]) -> None:
        """Adds to a request what has changed since the last one, so that it fetches exactly what is `wanted`."""
        if any(
            topic_partition in self._known and self._known[topic_partition].topic_id != new.topic_id
            for topic_partition, new in wanted.items()
        ):
            self.lost()  # a topic was recreated, and older brokers identify it by its name alone
        request.session_id, request.session_epoch = self._session_id, self._epoch
        request.topics = _topics(
            {topic_partition: new for topic_partition, new in wanted.items() if self._known.get(topic_partition) != new}
        )
        request.forgotten_topics_data = _forgotten(
            {topic_partition: old for topic_partition, old in self._known.items() if topic_partition not in wanted}
        )
        self._known = dict(wanted)

    def answered(self, response: FetchResponse) -> bool:
        """Advances to the next epoch; false if the broker has lost the session, and has returned no records."""
        code = ErrorCode(response.error_code)
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._session_id = NO_SESSION
        if code:
            self.lost()
            return code not in SESSION_LOST
        if response.session_id == NO_SESSION:  # the broker has no session for this client, or no longer
            self._session_id = NO_SESSION
            self.lost()
        else:
            self._session_id = response.session_id
            self._epoch = self._epoch + 1 if self._epoch < EPOCH_MAX else 1
        return True

    def lost(self) -> None:
        """What the broker remembers is unknown now: the next fetch names every partition, in a new session."""
        self._epoch = FIRST_EPOCH
        self._known = {}

    def closing_request(self) -> FetchRequest:
        """The request that closes the session."""
        request = FetchRequest(max_wait_ms=0, session_id=self._session_id, session_epoch=LAST_EPOCH)
        self._session_id = NO_SESSION
        self.lost()
        return request


def _topics(told: Mapping[TopicPartition, Wanted]) -> list[FetchTopic]:
    """Only adjacent partitions share a topic's entry: the broker fills a response in the order of the request.

    If a topic were named only once, with all of its partitions, a partition that was just read could get in front of
    other topics again, together with a quiet partition of its topic. The other topics would never be read.
    """
    topics: list[FetchTopic] = []
    for topic_partition, wanted in told.items():
        if not topics or topics[-1].topic != topic_partition.topic:
            topics.append(FetchTopic(topic=topic_partition.topic, topic_id=wanted.topic_id))
        topics[-1].partitions.append(
            FetchPartition(
                partition=topic_partition.partition,
                current_leader_epoch=wanted.leader_epoch,
                fetch_offset=wanted.offset,
                partition_max_bytes=wanted.max_bytes,
            )
        )
    return topics


def _forgotten(topic_partitions: Mapping[TopicPartition, Wanted]) -> list[ForgottenTopic]:
    topics: dict[str, ForgottenTopic] = {}
    for topic_partition, old in topic_partitions.items():
        topic = topics.get(topic_partition.topic)
        if topic is None:
            topic = topics[topic_partition.topic] = ForgottenTopic(topic=topic_partition.topic, topic_id=old.topic_id)
        topic.partitions.append(topic_partition.partition)
    return list(topics.values())
