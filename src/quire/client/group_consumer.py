"""A consumer that is a member of a group: it reads the partitions that are assigned to it, and commits offsets.

It joins an existing group in the protocol of that group, and a new one in the consumer protocol (KIP-848) if the broker
has it. Heartbeats, changes of the assignment and commits run beside the reading, on connections of their own. Records
count as read when the caller calls `done_with`, and only those are committed: every five seconds, before a partition
goes to another member, and at the end. So every record is read by some member at least once.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from quire.client.admin.group_descriptions import CLASSIC, Group
from quire.client.admin.groups import describe_groups
from quire.client.backoff import Backoff
from quire.client.classic_member import ClassicMember
from quire.client.cluster import Cluster
from quire.client.consumer import CURRENT, END, Consumer, ConsumerConfig, Start
from quire.client.consumer_member import ConsumerMember
from quire.client.errors import ClientError, UnsupportedError, passes
from quire.client.fetched import Fetched
from quire.client.group_member import FENCED, FencedError, GroupMember
from quire.client.group_offsets import OffsetAndMetadata, commit_offsets, fetch_offsets
from quire.client.offsets import TopicPartition
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import Timer
from quire.steps import Steps, perform, sleep

REBALANCE_TIMEOUT_MS = 60_000
COMMIT_INTERVAL_MS = 5_000.0
OUT_OF_STEP = (*FENCED, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.REBALANCE_IN_PROGRESS)
"""Errors of a commit that the next heartbeat resolves."""


class GroupConsumer:
    """`otherwise` is where to begin in a partition without a committed offset."""

    def __init__(
        self, cluster: Cluster, group_id: str, topics: Sequence[str], config: ConsumerConfig, otherwise: Start = END
    ) -> None:
        self.group_id = group_id
        self.commits = True
        """While this is off, nothing is committed, not even where reading began."""
        self._cluster = cluster.beside()
        self._topics = list(topics)
        self._otherwise = otherwise
        self._consumer = Consumer(cluster, replace(config, reset=otherwise), self.done_with)
        self._member: GroupMember | None = None
        self._read: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._timer: Timer | None = None
        self._closed = False

    def start(self) -> None:
        """Joins the group, and stays a member until `close`."""
        perform(self._take_part()).when_done(self._ended)
        self._commit_later()

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The partitions of this member, and the next offset of each that `poll` returns."""
        return self._consumer.positions

    @property
    def uncommitted(self) -> list[TopicPartition]:
        """The partitions of this member for which the group has no committed offset."""
        return [topic_partition for topic_partition in self._read if self._committed[topic_partition] < 0]

    def poll(self) -> list[Fetched]:
        return self._consumer.poll()

    def arrival(self) -> Pending[None]:
        """Completed when `poll` has records or an error, or the assignment has changed."""
        return self._consumer.arrival()

    def done_with(self, topic_partition: TopicPartition, offset: int) -> None:
        """Marks all records before this offset as read, so that the offset is committed."""
        if topic_partition in self._read:
            self._read[topic_partition] = offset

    def close(self) -> Steps[None]:
        """Commits and leaves the group, so that other members continue at once; raises an error of the commit."""
        self._closed = True
        self._consumer.close()
        if self._timer is not None:
            self._timer.cancel()
        try:
            yield from self._commit(list(self._read))
        finally:
            if self._member is not None:
                with suppress(ClientError, ApiError):
                    yield from self._member.leave()
            self._cluster.close()

    # --- Membership

    def _take_part(self) -> Steps[None]:
        backoff = Backoff(self._cluster.random)
        while not self._closed:
            try:
                if self._member is None:
                    self._member = yield from self._member_like_the_others()
                assigned = yield from self._member.exchange()
                if self._closed:
                    return
                if assigned is None:
                    backoff.reset()
                    yield from sleep(self._cluster.clock, self._member.interval_ms)
                else:
                    yield from self._change_to(assigned)
                    self._member.reads()
                    self._consumer.wake()
            except FencedError:
                self._read.clear()
                yield from self._consumer.assign({})
            except (ClientError, ApiError) as error:
                if _is_too_old(error) and isinstance(self._member, ConsumerMember):
                    self._member = self._classic_member()
                elif passes(error):
                    yield from sleep(self._cluster.clock, backoff.next_ms())
                else:
                    raise

    def _member_like_the_others(self) -> Steps[GroupMember]:
        found = (yield from describe_groups(self._cluster, [self.group_id]))[self.group_id]
        if isinstance(found, Group) and found.protocol == CLASSIC:
            return self._classic_member()
        return ConsumerMember(self._cluster, self.group_id, self._topics, REBALANCE_TIMEOUT_MS)

    def _classic_member(self) -> GroupMember:
        return ClassicMember(self._cluster, self.group_id, self._topics, REBALANCE_TIMEOUT_MS)

    def _ended(self, outcome: Exception | None) -> None:
        if outcome is not None:
            self._consumer.fail(outcome)

    def _change_to(self, wanted: Sequence[TopicPartition]) -> Steps[None]:
        """Revokes the partitions that now belong to others, then begins to read the new ones."""
        lost = [topic_partition for topic_partition in self.positions if topic_partition not in wanted]
        if lost:
            yield from self._consumer.assign(self._going_on(wanted))
            with suppress(ClientError, ApiError):  # on failure, the next owner reads some records again
                yield from self._commit(lost)
            for topic_partition in lost:
                self._read.pop(topic_partition, None)
        new = [topic_partition for topic_partition in wanted if topic_partition not in self.positions]
        if new:
            committed = yield from fetch_offsets(self._cluster, self.group_id)
            begin = {
                topic_partition: Start(offset=committed[topic_partition].offset)
                if topic_partition in committed
                else self._otherwise
                for topic_partition in new
            }
            yield from self._consumer.assign(self._going_on(wanted) | begin)
            for topic_partition in new:
                self._read[topic_partition] = self.positions[topic_partition]
                self._committed[topic_partition] = (
                    committed[topic_partition].offset if topic_partition in committed else -1
                )

    def _going_on(self, wanted: Sequence[TopicPartition]) -> dict[TopicPartition, Start]:
        return {topic_partition: CURRENT for topic_partition in self.positions if topic_partition in wanted}

    # --- Offsets

    def _commit(self, topic_partitions: Sequence[TopicPartition]) -> Steps[None]:
        """Commits the offsets that have changed; raises the first error."""
        committer = None if self._member is None else self._member.committer
        moved = {
            topic_partition: OffsetAndMetadata(self._read[topic_partition])
            for topic_partition in topic_partitions
            if topic_partition in self._read and self._read[topic_partition] != self._committed[topic_partition]
        }
        if not moved or not self.commits or committer is None:
            return
        yield from commit_offsets(self._cluster, self.group_id, moved, committer)
        self._committed |= {topic_partition: offset for topic_partition, (offset, *_) in moved.items()}

    def _commit_later(self) -> None:
        self._timer = self._cluster.clock.call_later(COMMIT_INTERVAL_MS, self._commit_now)

    def _commit_now(self) -> None:
        perform(self._commit(list(self._read))).when_done(self._committed_or_not)

    def _committed_or_not(self, outcome: Exception | None) -> None:
        """Ignores errors that a later commit or the next heartbeat resolves."""
        if isinstance(outcome, ApiError) and not passes(outcome) and outcome.code not in OUT_OF_STEP:
            self._consumer.fail(outcome)
        elif not self._closed:
            self._commit_later()


def _is_too_old(error: Exception) -> bool:
    """Whether the broker does not have the consumer protocol, or has turned it off."""
    return isinstance(error, UnsupportedError) or (
        isinstance(error, ApiError) and error.code == ErrorCode.UNSUPPORTED_VERSION
    )
