"""Which partitions the next fetch from a leader names: those that have changed since the last one (KIP-227).

The first fetch of a session names every partition. Later ones name those whose log has grown or was truncated, those
that were added, and those to forget. A partition that has to wait, because the leader refused it or because its log is
being flushed, is forgotten until its time has come: the others continue. So is one that `throttled_copies.py` holds. If
either side has lost the session, the next fetch begins another.
"""

from quire.client.fetch_session import EPOCH_MAX, FIRST_EPOCH, LAST_EPOCH, NO_SESSION, SESSION_LOST
from quire.config.units import INT_MAX
from quire.node.partitions.hosted import PartitionId
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from quire.replication.follower_role import FollowerRole

FIRST_PAUSE_MS = 10.0
"""After an error. Each further error doubles it, up to `replica.fetch.backoff.ms`."""

UNLIMITED_BYTES = INT_MAX
NOT_REQUESTED = -1
"""No fetch has named the partition under this role."""


class CopiedPartition:
    """A partition that one leader epoch is copied from, and what the last fetch said of its log."""

    __slots__ = ("follower", "is_in_sync", "key", "max_bytes", "named_start", "pause_ms", "requested_offset")

    def __init__(self, follower: FollowerRole, *, is_in_sync: bool = False) -> None:
        self.follower = follower
        self.key: PartitionId = (follower.partition.topic_id, follower.partition.index)
        self.requested_offset = NOT_REQUESTED
        self.named_start = NOT_REQUESTED
        self.pause_ms = 0.0
        """How long it had to wait after the last error; 0 if the last fetch was answered without one."""
        self.is_in_sync = is_in_sync
        """Whether it had all up to the high watermark of the last answer; before that, whether it is in the ISR."""
        self.max_bytes = UNLIMITED_BYTES
        """Of one answer, less than others if it is throttled."""

    @property
    def has_news(self) -> bool:
        """Whether the leader must be told: the log has grown, or retention has deleted its beginning."""
        log = self.follower.log
        return log.end_offset != self.requested_offset or log.start_offset != self.named_start


class FetchSchedule:
    __slots__ = ("_epoch", "_held", "_in_session", "_paused", "_session_id", "_to_forget", "_to_name", "partitions")

    def __init__(self) -> None:
        self.partitions: dict[PartitionId, CopiedPartition] = {}
        self._session_id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._in_session: dict[PartitionId, None] = {}
        """What the leader remembers, once it has the next fetch."""
        self._to_name: dict[PartitionId, CopiedPartition] = {}
        self._to_forget: dict[PartitionId, None] = {}
        self._paused: dict[PartitionId, float] = {}
        """Until when."""
        self._held: dict[PartitionId, None] = {}
        """Until they are released."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to fetch now."""
        return not self._in_session and not self._to_name

    @property
    def has_session(self) -> bool:
        """Whether the leader remembers partitions."""
        return self._epoch != FIRST_EPOCH

    @property
    def next_resume_ms(self) -> float | None:
        return min(self._paused.values(), default=None)

    def add(self, copied: CopiedPartition) -> None:
        self._paused.pop(copied.key, None)
        self._held.pop(copied.key, None)
        self.partitions[copied.key] = copied
        self._to_name[copied.key] = copied

    def remove(self, key: PartitionId) -> None:
        self.partitions.pop(key, None)
        self._paused.pop(key, None)
        self._held.pop(key, None)
        self._leave_out(key)

    def changed(self, copied: CopiedPartition) -> None:
        """The next fetch has to name it; if it waits, the first fetch after the wait does."""
        if self.is_fetched(copied):
            self._to_name[copied.key] = copied

    def is_fetched(self, copied: CopiedPartition) -> bool:
        """Whether the next fetch names it or continues it."""
        key = copied.key
        return self.partitions.get(key) is copied and key not in self._paused and key not in self._held

    def pause(self, copied: CopiedPartition, until_ms: float) -> None:
        if self.partitions.get(copied.key) is copied:
            self._paused[copied.key] = until_ms
            self._leave_out(copied.key)

    def resume(self, key: PartitionId) -> None:
        if self._paused.pop(key, None) is not None:
            self._to_name[key] = self.partitions[key]

    def resume_due(self, now_ms: float) -> None:
        for key in [each for each, until_ms in self._paused.items() if until_ms <= now_ms]:
            self.resume(key)

    def hold(self, copied: CopiedPartition) -> None:
        """Fetches a partition that does not pause no more until it is released."""
        self._held[copied.key] = None
        self._leave_out(copied.key)

    def release(self, key: PartitionId) -> None:
        del self._held[key]
        self._to_name[key] = self.partitions[key]

    def to_name(self) -> list[CopiedPartition]:
        """What the next fetch names."""
        return list(self._to_name.values())

    def _leave_out(self, key: PartitionId) -> None:
        self._to_name.pop(key, None)
        if key in self._in_session:
            del self._in_session[key]
            self._to_forget[key] = None

    def fill(self, request: FetchRequest, max_bytes: int) -> None:
        """Adds to a fetch what has changed. If there is nothing to fetch now, it ends the session."""
        request.session_id, request.session_epoch = self._session_id, self._epoch
        if self.is_empty:
            request.session_epoch, request.max_wait_ms = LAST_EPOCH, 0
            self.lost()
            return
        if self._epoch == FIRST_EPOCH:
            self._to_forget.clear()
            self._name_all()
        topics: dict[bytes, FetchTopic] = {}
        for (topic_id, _), copied in self._to_name.items():
            if topic_id not in topics:
                topics[topic_id] = FetchTopic(topic_id=topic_id)
                request.topics.append(topics[topic_id])
            topics[topic_id].partitions.append(_wanted(copied, max_bytes))
            self._to_forget.pop(copied.key, None)
            self._in_session[copied.key] = None
        forgotten: dict[bytes, ForgottenTopic] = {}
        for topic_id, index in self._to_forget:
            if topic_id not in forgotten:
                forgotten[topic_id] = ForgottenTopic(topic_id=topic_id)
                request.forgotten_topics_data.append(forgotten[topic_id])
            forgotten[topic_id].partitions.append(index)
        self._to_name, self._to_forget = {}, {}

    def answered(self, response: FetchResponse) -> bool:
        """Advances to the next epoch. False if the leader has lost the session; the next fetch begins another."""
        code = ErrorCode(response.error_code)
        if code or response.session_id == NO_SESSION:
            self.lost()
            self._session_id = NO_SESSION if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND else self._session_id
            return code not in SESSION_LOST
        self._session_id = response.session_id
        self._epoch = self._epoch + 1 if self._epoch < EPOCH_MAX else 1
        return True

    def lost(self) -> None:
        """It is unknown what the leader remembers."""
        self._epoch = FIRST_EPOCH
        self._in_session.clear()
        self._to_forget.clear()
        self._name_all()

    def _name_all(self) -> None:
        left_out = (self._paused, self._held)
        self._to_name = {
            key: each for key, each in self.partitions.items() if not any(key in keys for keys in left_out)
        }


def _wanted(copied: CopiedPartition, max_bytes: int) -> FetchPartition:
    follower = copied.follower
    copied.requested_offset, last_epoch = follower.fetch_position
    copied.named_start = follower.log.start_offset
    return FetchPartition(
        partition=copied.key[1],
        current_leader_epoch=follower.leader_epoch,
        fetch_offset=copied.requested_offset,
        last_fetched_epoch=last_epoch,
        log_start_offset=copied.named_start,
        partition_max_bytes=min(max_bytes, copied.max_bytes),
    )
