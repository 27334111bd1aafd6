"""What a leader remembers of one follower's fetches, so that a fetch costs only what has changed (KIP-227).

The session is a `ReplicaReader` of every leadership whose partition it contains: an append puts the partition into
`changed` and ends the wait of a fetch. A fetch looks at the partitions in `changed` and at those that it names. After
an election the new leader ends the wait too, so that the follower can add the partition to its fetches at once.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from quire.node.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, MAX_EPOCH, FetchPartition, PartitionKey
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.fetch import FetchPartition as Wanted
from quire.protocol.messages.fetch import FetchRequest, PartitionData
from quire.replication.leader_role import LeaderRole
from quire.replication.replica_reader import ReplicaReader
from quire.seams import Clock, Random, Timer

if TYPE_CHECKING:
    from quire.metadata.image import ClusterImage

SESSIONS_OF_A_BROKER = 16
"""A broker has one for each of its fetchers. The one that has not fetched for longest makes room."""
PARTITIONS_MAX = 100_000
"""In one session: more than a node should have."""
SHORT_WAITS_MS = 1_000.0
SHORT_WAIT_MS = 20
"""After an election fetches wait only this long for this time: the follower may learn of it later than the leader."""


class FollowedPartition(FetchPartition):
    """What a follower wants of a partition, and which leadership tells the session about it."""

    __slots__ = ("is_being_checked", "is_named", "leader", "log_start_offset")

    def __init__(self, topic_id: bytes, topic: str, wanted: Wanted) -> None:
        super().__init__(
            topic_id,
            topic,
            wanted.partition,
            wanted.fetch_offset,
            wanted.partition_max_bytes,
            wanted.current_leader_epoch,
            wanted.last_fetched_epoch,
        )
        self.log_start_offset = wanted.log_start_offset
        self.is_named = True
        """The follower has said where its log ends, and it is not known yet whether both logs agree up to there."""
        self.leader: LeaderRole | None = None
        self.is_being_checked = False
        """What it is to get next is read for the first time, and a job checks it."""

    def has_only_committed(self, answer: PartitionData) -> bool:
        """Whether an answer without records or an error would tell nothing but a later high watermark."""
        return (
            -1 < self.sent_high_watermark < answer.high_watermark
            and answer.log_start_offset == self.sent_log_start_offset
        )


class ReplicaSession(ReplicaReader):
    __slots__ = (
        "_by_leader",
        "_clock",
        "_more",
        "_scheduled",
        "_short_waits_until_ms",
        "_timer",
        "broker_epoch",
        "changed",
        "epoch",
        "id",
        "is_closed",
        "partitions",
        "replica_id",
        "throttled",
    )

    def __init__(self, session_id: int, replica_id: int, broker_epoch: int, clock: Clock) -> None:
        self.id = session_id
        self.replica_id = replica_id
        self.broker_epoch = broker_epoch
        self._clock = clock
        self.epoch = 1
        """Of the next fetch."""
        self.partitions: dict[PartitionKey, FollowedPartition] = {}
        self.changed: dict[PartitionKey, FollowedPartition] = {}
        """The partitions that the next answer has to look at, in the order in which they changed."""
        self.throttled: OrderedDict[PartitionKey, FollowedPartition] = OrderedDict()
        """What has something to read, and waits until the leader's quota is not used up, in the order of its turns."""
        self._by_leader: dict[LeaderRole, FollowedPartition] = {}
        self._more: Pending[None] | None = None
        """A fetch waits for this."""
        self._timer: Timer | None = None
        self._scheduled = False
        self._short_waits_until_ms = 0.0
        self.is_closed = False

    def resume(self, epoch: int) -> None:
        if epoch != self.epoch:
            raise ApiError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH, f"fetch session {self.id} is at epoch {self.epoch}, not {epoch}"
            )
        self.epoch = 1 if epoch == MAX_EPOCH else epoch + 1

    def update(self, request: FetchRequest) -> None:
        """What the follower has and wants now. A partition that is named twice counts once, with the later values."""
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                self._forget((topic.topic_id, topic.topic, index))
        for wanted_topic in request.topics:
            for wanted in wanted_topic.partitions:
                followed = FollowedPartition(wanted_topic.topic_id, wanted_topic.topic, wanted)
                known = self.partitions.get(followed.key)
                if known is None:
                    self.partitions[followed.key] = known = followed
                else:
                    if known.current_leader_epoch != followed.current_leader_epoch:
                        # The follower may not have taken an answer of the earlier epoch.
                        known.sent_high_watermark = -1
                    known.wants(followed)
                    known.log_start_offset = followed.log_start_offset
                    known.is_named = True
                self.changed[known.key] = known

    def _forget(self, key: PartitionKey) -> None:
        followed = self.partitions.pop(key, None)
        self.changed.pop(key, None)
        self.throttled.pop(key, None)
        if followed is not None and followed.leader is not None:
            self._leave(followed.leader)

    def follow(self, leader: LeaderRole, followed: FollowedPartition) -> None:
        """From now on the leadership tells this session what happens."""
        if followed.leader is not leader and not self.is_closed:
            if followed.leader is not None:
                self._leave(followed.leader)
            followed.leader = leader
            self._by_leader[leader] = followed
            leader.replica_readers[self] = None

    def _leave(self, leader: LeaderRole) -> None:
        self._by_leader.pop(leader, None)
        leader.replica_readers.pop(self, None)

    def close(self) -> None:
        """A fetch that waits is answered, and the follower begins another session."""
        self.is_closed = True
        for leader in list(self._by_leader):
            self._leave(leader)
        if self._more is not None:
            self._clock.call_soon(self._wake)

    # --- What leaders tell

    def has_more(self, leader: LeaderRole) -> None:
        followed = self._by_leader[leader]
        if followed.key in self.throttled and leader.is_active:
            self.changed[followed.key] = followed  # It is not its turn: an append does not end the wait.
        else:
            self._change(followed)

    def has_news(self, leader: LeaderRole) -> None:
        followed = self._by_leader[leader]
        self.changed[followed.key] = followed

    def is_checked(self, followed: FollowedPartition) -> None:
        """What is next in its log can be read, or has been found to be damaged."""
        followed.is_being_checked = False
        if self.partitions.get(followed.key) is followed and not self.is_closed:
            self._change(followed)

    def has_quota(self) -> None:
        self._wake_soon()

    def quota_changed(self) -> None:
        """The next answer looks at everything that was throttled."""
        if self.throttled:
            self.changed.update(self.throttled)
            self.throttled.clear()
            self._wake_soon()

    def _change(self, followed: FollowedPartition) -> None:
        self.changed[followed.key] = followed
        self._wake_soon()

    def _wake_soon(self) -> None:
        if self._more is not None and not self._scheduled:
            self._scheduled = True
            self._clock.call_soon(self._wake)

    # --- Waiting

    def when_more(self, max_wait_ms: float) -> Pending[None]:
        """Completed when there is something to read, or to say, or after `max_wait_ms`."""
        more: Pending[None] = Pending(on_abandoned=self.stop_waiting)
        if self._clock.monotonic_ms() < self._short_waits_until_ms:
            max_wait_ms = min(max_wait_ms, SHORT_WAIT_MS)
        self._timer = self._clock.call_later(max_wait_ms, self._wake)
        self._more = more
        return more

    def expect_fetches_soon(self) -> None:
        """A partition that the follower has to copy has a new leader here."""
        self._short_waits_until_ms = self._clock.monotonic_ms() + SHORT_WAITS_MS
        self._wake()

    def _wake(self) -> None:
        self._scheduled = False
        more = self._more
        self.stop_waiting()
        if more is not None:
            more.complete_once(None)

    def stop_waiting(self) -> None:
        self._more = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class ReplicaSessions:
    """The sessions of all followers of this node. Their number is bounded by that of registered brokers."""

    __slots__ = ("_by_replica", "_clock", "_random", "_sessions")

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._sessions: dict[int, ReplicaSession] = {}
        self._by_replica: dict[int, dict[ReplicaSession, None]] = {}
        """Least recently used first."""

    def of_fetch(self, request: FetchRequest, replica_id: int, broker_epoch: int) -> ReplicaSession:
        """The session of a fetch, with what the fetch says of it; ApiError if the follower must begin another.

        A fetch outside a session gets one too; the caller closes it.
        """
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            ended = self._sessions.get(request.session_id)
            if ended is not None and ended.replica_id == replica_id:
                self.close(ended.id)
            session = self._open(replica_id, broker_epoch)
        else:
            session = self._found(request.session_id, replica_id, broker_epoch)
            session.resume(request.session_epoch)
            own = self._by_replica[replica_id]
            own[session] = own.pop(session)
        session.update(request)
        if len(session.partitions) > PARTITIONS_MAX:
            self.close(session.id)
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "there is no room for so many partitions in a session")
        return session

    def _found(self, session_id: int, replica_id: int, broker_epoch: int) -> ReplicaSession:
        """A broker that has registered again begins another session.

        Otherwise it would not name the partitions that have not changed, and so never under its new registration.
        """
        found = self._sessions.get(session_id)
        if found is None or found.replica_id != replica_id or found.broker_epoch != broker_epoch:
            raise ApiError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                f"broker {replica_id} has no session {session_id} under broker epoch {broker_epoch}",
            )
        return found

    def _open(self, replica_id: int, broker_epoch: int) -> ReplicaSession:
        session_id = 1 + self._random.below(MAX_EPOCH - 1)
        while session_id in self._sessions:
            session_id = 1 + self._random.below(MAX_EPOCH - 1)
        for other in list(self._by_replica.get(replica_id, ()))[: -SESSIONS_OF_A_BROKER + 1]:
            self.close(other.id)
        session = ReplicaSession(session_id, replica_id, broker_epoch, self._clock)
        self._sessions[session_id] = session
        self._by_replica.setdefault(replica_id, {})[session] = None
        return session

    def close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            own = self._by_replica[session.replica_id]
            del own[session]
            if not own:
                del self._by_replica[session.replica_id]
            session.close()

    def keep_only(self, image: "ClusterImage") -> None:
        """Closes the sessions of brokers that are no longer registered, or have registered again since."""
        for session in list(self._sessions.values()):
            broker = image.brokers.get(session.replica_id)
            if broker is None or 0 <= session.broker_epoch < broker.epoch:
                self.close(session.id)

    def quota_changed(self) -> None:
        for session in self._sessions.values():
            session.quota_changed()

    def expect_fetches_soon(self, replicas: Iterable[int]) -> None:
        for replica_id in replicas:
            for session in self._by_replica.get(replica_id, ()):
                session.expect_fetches_soon()
