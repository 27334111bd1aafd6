"""Fetch sessions (KIP-227): the broker remembers the partitions of a consumer, so that requests and responses contain
only the partitions that changed.

A full fetch with epoch 0 opens a session. Incremental fetches with epochs 1, 2, ... continue it, and epoch -1 closes
it. Both sides count epochs, so a lost or repeated request is detected and the client opens a new session. The cache
limits the number of sessions and of partitions. If all sessions in a full cache are in use, new clients get responses
without a session. A session that would exceed the limit of partitions is closed.
"""

from collections.abc import Iterable

from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import Random

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
NO_SESSION = 0
MAX_EPOCH = 2**31 - 1

_SESSION_PARTITIONS_MAX = 20_000
"""The limit of one session. Each request looks at all partitions of its session."""
_PARTITIONS_MAX = 200_000
"""The limit of all sessions together. A partition takes some hundred bytes, even if it does not exist."""

PartitionKey = tuple[bytes, str, int]
"""Topic id, topic name and partition. The id or the name is empty, depending on the request's version."""


class FetchPartition:
    """What a client wants to read of a partition, and the offsets that the last response had for it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "last_fetched_epoch",
        "max_bytes",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic_id: bytes,
        topic: str,
        index: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
    ) -> None:
        self.topic_id = topic_id
        self.topic = topic
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1

    @property
    def key(self) -> PartitionKey:
        return (self.topic_id, self.topic, self.index)

    def wants(self, other: "FetchPartition") -> None:
        """Takes over the values of a newer request for the same partition."""
        self.fetch_offset = other.fetch_offset
        self.max_bytes = other.max_bytes
        self.current_leader_epoch = other.current_leader_epoch
        self.last_fetched_epoch = other.last_fetched_epoch

    def has_news(self, high_watermark: int, log_start_offset: int, has_data_or_error: bool) -> bool:
        """Whether an incremental response must contain this partition. Remembers the offsets that it will have."""
        news = (
            has_data_or_error
            or high_watermark != self.sent_high_watermark
            or log_start_offset != self.sent_log_start_offset
        )
        self.sent_high_watermark = high_watermark
        self.sent_log_start_offset = log_start_offset
        return news


class FetchSession:
    __slots__ = ("epoch", "id", "last_used_ms", "partitions", "uses_topic_ids")

    def __init__(self, session_id: int, uses_topic_ids: bool, partitions: Iterable[FetchPartition]) -> None:
        self.id = session_id
        self.epoch = 1
        self.last_used_ms = 0.0
        self.uses_topic_ids = uses_topic_ids
        self.partitions = {partition.key: partition for partition in partitions}

    def update(self, wanted: Iterable[FetchPartition], forgotten: Iterable[PartitionKey]) -> None:
        for partition in wanted:
            known = self.partitions.get(partition.key)
            if known is None:
                self.partitions[partition.key] = partition
            else:
                known.wants(partition)
        for key in forgotten:
            self.partitions.pop(key, None)

    def rotate(self, served: Iterable[FetchPartition]) -> None:
        """Moves partitions that had data to the end, so that a size limit does not starve the others."""
        for partition in served:
            known = self.partitions.pop(partition.key, None)
            if known is not None:
                self.partitions[partition.key] = known

    def next_epoch(self) -> None:
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1


class FetchSessions:
    """All sessions of a node, least recently used first."""

    __slots__ = ("_idle_ms", "_limit", "_partitions", "_random", "_sessions")

    def __init__(self, limit: int, random: Random, idle_ms: float = 120_000) -> None:
        self._limit = limit
        self._idle_ms = idle_ms
        self._random = random
        self._sessions: dict[int, FetchSession] = {}
        self._partitions = 0
        """How many partitions all sessions together remember."""

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self, replaced_id: int, uses_topic_ids: bool, partitions: list[FetchPartition], now_ms: float
    ) -> FetchSession | None:
        """A new session, or None if there is no room or there are no partitions."""
        self.close(replaced_id)
        if not partitions or not self._make_room(len(partitions), now_ms):
            return None
        session = FetchSession(self._unused_id(), uses_topic_ids, partitions)
        session.last_used_ms = now_ms
        self._sessions[session.id] = session
        self._partitions += len(session.partitions)
        return session

    def resume(self, session_id: int, epoch: int, uses_topic_ids: bool, now_ms: float) -> FetchSession:
        """The session of an incremental fetch. Raises ApiError if the client must open a new session."""
        session = self._sessions.get(session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {session_id}")
        if session.epoch != epoch:
            raise ApiError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {session_id} is at epoch {session.epoch}, not {epoch}",
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, "topic ids and names were mixed in one session")
        session.next_epoch()
        session.last_used_ms = now_ms
        self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def update(
        self, session: FetchSession, wanted: Iterable[FetchPartition], forgotten: Iterable[PartitionKey]
    ) -> None:
        """Applies an incremental fetch to its session. If it has too many partitions, closes it and raises ApiError."""
        before = len(session.partitions)
        session.update(wanted, forgotten)
        self._partitions += len(session.partitions) - before
        if len(session.partitions) > _SESSION_PARTITIONS_MAX or self._partitions > _PARTITIONS_MAX:
            self.close(session.id)
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "there is no room for so many partitions in sessions")

    def close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.partitions)

    def _make_room(self, partitions: int, now_ms: float) -> bool:
        if partitions > _SESSION_PARTITIONS_MAX:
            return False
        while len(self._sessions) >= self._limit or self._partitions + partitions > _PARTITIONS_MAX:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.last_used_ms < self._idle_ms:
                return False
            self.close(oldest.id)
        return True

    def _unused_id(self) -> int:
        while True:
            session_id = 1 + self._random.below(MAX_EPOCH - 1)
            if session_id not in self._sessions:
                return session_id
