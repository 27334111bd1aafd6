"""A fetch session with one broker (KIP-227): it remembers what is read from it, so that a fetch says only what is new.

The first fetch names every partition and has epoch 0; if the broker answers with a session id, the next ones name only
the partitions that were added or have moved on, and those to be forgotten, with epochs counting from 1. The broker in
turn leaves out partitions that it has no news of. When either side has lost the thread (the broker's memory was needed
for others, an answer never came) the next fetch closes the session and begins another.

Fetches of one session follow one another: the next may go out when the last was answered or given up. `Fetcher` keeps
one for each leader.
"""

from collections.abc import Mapping
from typing import NamedTuple

from quire.client.offsets import TopicPartition
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

NO_SESSION = 0
FIRST_EPOCH = 0
LAST_EPOCH = -1  # closes the session, or has none begun
EPOCH_MAX = 0x7FFFFFFF

LOST_THREAD = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
"""Refusals of a whole fetch after which a new session helps."""


class Wanted(NamedTuple):
    """What is to be read of a partition next."""

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
        """Puts into a request what the broker has to be told to read exactly this."""
        if any(place in self._known and self._known[place].topic_id != new.topic_id for place, new in wanted.items()):
            self.lost()  # a topic was made anew, and older brokers tell it from the other by its name alone
        request.session_id, request.session_epoch = self._session_id, self._epoch
        request.topics = _topics({place: new for place, new in wanted.items() if self._known.get(place) != new})
        request.forgotten_topics_data = _forgotten(
            {place: old for place, old in self._known.items() if place not in wanted}
        )
        self._known = dict(wanted)

    def answered(self, response: FetchResponse) -> bool:
        """Goes on to the next fetch; false if the broker lost the thread, and nothing was read."""
        code = ErrorCode(response.error_code)
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._session_id = NO_SESSION
        if code:
            self.lost()
            return code not in LOST_THREAD
        if response.session_id == NO_SESSION:  # it keeps none for us, or no longer
            self._session_id = NO_SESSION
            self.lost()
        else:
            self._session_id = response.session_id
            self._epoch = self._epoch + 1 if self._epoch < EPOCH_MAX else 1
        return True

    def lost(self) -> None:
        """Nobody knows what the broker remembers now: the next fetch names everything, in a new session."""
        self._epoch = FIRST_EPOCH
        self._known = {}

    def goodbye(self) -> FetchRequest:
        """What lets the broker forget the session."""
        request = FetchRequest(max_wait_ms=0, session_id=self._session_id, session_epoch=LAST_EPOCH)
        self._session_id = NO_SESSION
        self.lost()
        return request


def _topics(told: Mapping[TopicPartition, Wanted]) -> list[FetchTopic]:
    """Only neighbours share a topic's entry: what comes first is served first where room is short, so the order counts.

    A topic named once, with all of its partitions, would let a partition that was just served slip in front of other
    topics again, whenever a quiet partition of the same topic stands before them; those would never be read.
    """
    topics: list[FetchTopic] = []
    for place, wanted in told.items():
        if not topics or topics[-1].topic != place.topic:
            topics.append(FetchTopic(topic=place.topic, topic_id=wanted.topic_id))
        topics[-1].partitions.append(
            FetchPartition(
                partition=place.partition,
                current_leader_epoch=wanted.leader_epoch,
                fetch_offset=wanted.offset,
                partition_max_bytes=wanted.max_bytes,
            )
        )
    return topics


def _forgotten(places: Mapping[TopicPartition, Wanted]) -> list[ForgottenTopic]:
    topics: dict[str, ForgottenTopic] = {}
    for place, old in places.items():
        topic = topics.get(place.topic)
        if topic is None:
            topic = topics[place.topic] = ForgottenTopic(topic=place.topic, topic_id=old.topic_id)
        topic.partitions.append(place.partition)
    return list(topics.values())
