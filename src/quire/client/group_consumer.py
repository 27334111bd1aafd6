"""A consumer that is a member of a group: it reads what the coordinator gives it, and commits how far it has come.

Heartbeats, changes of the assignment and commits run beside the reading, on connections of their own. What has been
handed over counts as read when the caller says so with `done_with`, and only that is committed: now and then, before a
partition goes to another member, and in the end. So every record is read by some member at least once.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from quire.client.backoff import Backoff
from quire.client.cluster import Cluster
from quire.client.consumer import END, GO_ON, Consumer, ConsumerConfig, Start
from quire.client.coordinators import ASK_AGAIN, CoordinatorType, ask_coordinator
from quire.client.errors import ClientError, passes
from quire.client.fetched import Fetched
from quire.client.group_membership import FENCED, FencedError, GroupMembership, TopicIdPartition
from quire.client.group_offsets import Committer, OffsetAndMetadata, commit_offsets, fetch_offsets
from quire.client.offsets import TopicPartition
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from quire.protocol.uuids import to_text
from quire.seams import Timer
from quire.steps import Steps, perform, sleep

REBALANCE_TIMEOUT_MS = 60_000
COMMIT_INTERVAL_MS = 5_000.0
OWN_MEMBER_ID = (1, 1)
"""The versions of ConsumerGroupHeartbeat in which members choose their own ids (KIP-1082)."""
OUT_OF_STEP = (*FENCED, ErrorCode.STALE_MEMBER_EPOCH)
"""Refusals of a commit that the next heartbeat puts right."""


class GroupConsumer:
    """`otherwise` is where to begin in a partition for which the group has committed nothing."""

    def __init__(
        self, cluster: Cluster, group_id: str, topics: Sequence[str], config: ConsumerConfig, otherwise: Start = END
    ) -> None:
        self._cluster = cluster.beside()
        self._topics = list(topics)
        self._otherwise = otherwise
        self._consumer = Consumer(cluster, replace(config, reset=otherwise), self.done_with)
        self._membership = GroupMembership(group_id, to_text(cluster.random.uuid()), topics, REBALANCE_TIMEOUT_MS)
        self._read: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._timer: Timer | None = None
        self._closed = False

    def start(self) -> None:
        """Joins the group, and is a member until `close`."""
        perform(self._take_part()).when_done(self._ended)
        self._commit_later()

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The partitions that are this member's now, and the next offset of each to be handed over."""
        return self._consumer.positions

    def poll(self) -> list[Fetched]:
        return self._consumer.poll()

    def arrival(self) -> Pending[None]:
        """Comes back when `poll` has something to say, or the partitions are others."""
        return self._consumer.arrival()

    def done_with(self, place: TopicPartition, offset: int) -> None:
        """Everything before this offset need not be read again by anybody."""
        if place in self._read:
            self._read[place] = offset

    def close(self) -> Steps[None]:
        """Commits what is done with and leaves, so that others go on at once; raises what could not be committed."""
        self._closed = True
        self._consumer.close()
        if self._timer is not None:
            self._timer.cancel()
        try:
            if self._membership.epoch > 0:
                yield from self._commit(list(self._read))
        finally:
            if self._membership.epoch > 0:
                with suppress(ClientError, ApiError):
                    yield from self._say(self._membership.goodbye())
            self._cluster.close()

    # -- being a member ---------------------------------------------------------------------------------------------

    def _take_part(self) -> Steps[None]:
        backoff = Backoff(self._cluster.random)
        while not self._closed:
            try:
                response = yield from self._say(self._membership.heartbeat())
                if self._closed:
                    return
                assigned = self._membership.answered(response)
                if assigned is None:
                    backoff.reset()
                    yield from sleep(self._cluster.clock, self._membership.interval_ms)
                else:
                    yield from self._change_to(assigned)  # and say at once that it is so
            except FencedError:
                self._read.clear()
                yield from self._consumer.assign({})
            except (ClientError, ApiError) as error:
                if not passes(error):
                    raise
                yield from sleep(self._cluster.clock, backoff.next_ms())

    def _ended(self, outcome: Exception | None) -> None:
        if outcome is not None:
            self._consumer.fail(outcome)

    def _say(self, request: ConsumerGroupHeartbeatRequest) -> Steps[ConsumerGroupHeartbeatResponse]:
        return (
            yield from ask_coordinator(
                self._cluster,
                CoordinatorType.GROUP,
                self._membership.group_id,
                request,
                ConsumerGroupHeartbeatResponse,
                lambda answer: ErrorCode(answer.error_code) if answer.error_code in ASK_AGAIN else ErrorCode.NONE,
                versions=OWN_MEMBER_ID,
            )
        )

    def _change_to(self, assigned: list[TopicIdPartition]) -> Steps[None]:
        """Gives up what is somebody else's from now on, then begins with what is new."""
        wanted = yield from self._named(assigned)
        lost = [place for place in self.positions if place not in wanted]
        if lost:
            yield from self._consumer.assign(self._going_on(wanted))
            with suppress(ClientError, ApiError):  # then the next reader begins a little earlier, and repeats some
                yield from self._commit(lost)
            for place in lost:
                self._read.pop(place, None)
        new = [place for place in wanted if place not in self.positions]
        if new:
            committed = yield from fetch_offsets(self._cluster, self._membership.group_id)
            begin = {
                place: Start(offset=committed[place].offset) if place in committed else self._otherwise for place in new
            }
            yield from self._consumer.assign(self._going_on(wanted) | begin)
            for place in new:
                self._read[place] = self.positions[place]
                self._committed[place] = committed[place].offset if place in committed else -1
        self._membership.reads(assigned)
        self._consumer.wake()

    def _going_on(self, wanted: Sequence[TopicPartition]) -> dict[TopicPartition, Start]:
        return {place: GO_ON for place in self.positions if place in wanted}

    def _named(self, assigned: Sequence[TopicIdPartition]) -> Steps[list[TopicPartition]]:
        """The partitions by name; those of a topic that is gone already are left out."""
        names = self._cluster.metadata.names_by_id
        if any(topic_id not in names for topic_id, _ in assigned):
            yield from self._cluster.refresh(self._topics)
        return [TopicPartition(names[topic_id], partition) for topic_id, partition in assigned if topic_id in names]

    # -- offsets ----------------------------------------------------------------------------------------------------

    def _commit(self, places: Sequence[TopicPartition]) -> Steps[None]:
        """Commits what has moved; raises the first refusal."""
        moved = {
            place: OffsetAndMetadata(self._read[place])
            for place in places
            if place in self._read and self._read[place] != self._committed[place]
        }
        if not moved:
            return
        member = Committer(self._membership.member_id, self._membership.epoch)
        yield from commit_offsets(self._cluster, self._membership.group_id, moved, member)
        self._committed |= {place: offset for place, (offset, *_) in moved.items()}

    def _commit_later(self) -> None:
        self._timer = self._cluster.clock.call_later(COMMIT_INTERVAL_MS, self._commit_now)

    def _commit_now(self) -> None:
        perform(self._commit(list(self._read))).when_done(self._committed_or_not)

    def _committed_or_not(self, outcome: Exception | None) -> None:
        """What passes is committed the next time, and being fenced is for the next heartbeat to find out."""
        if isinstance(outcome, ApiError) and not passes(outcome) and outcome.code not in OUT_OF_STEP:
            self._consumer.fail(outcome)
        elif not self._closed:
            self._commit_later()
