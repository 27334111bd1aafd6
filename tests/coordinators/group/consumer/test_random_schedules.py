"""Random members, crashes, time jumps and a network that repeats, delays and reorders: three promises hold throughout.

1. No partition is owned by two consumers at once. A consumer owns what it was assigned, from the response on
   until it gives it up, right before it says so; it stops owning anything when it was not answered for the length of a
   session, or when the coordinator has refused it.
2. A member's epoch never goes back while it is a member, and a group's epoch never does.
3. Once all requests arrive and nothing else happens, the group comes to rest at its target, and the target is complete.

Requests of one epoch arrive in the order they were sent, as they do on a connection; those of earlier epochs, and
joins, may arrive again at any time.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quire.coordinators.group.consumer import target
from quire.coordinators.group.consumer.assignors import turns
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.protocol.errors import ApiError
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.coordinators.group.consumer.consumer_shard import GROUP, ConsumerShard, beat
from tests.coordinators.group.consumer.sim_consumer import SimConsumer
from tests.coordinators.sim_shard import LogEntry

TOPICS = ("orders", "payments", "refunds")
SUBSCRIPTIONS = st.sampled_from([("orders",), ("orders",), ("orders", "payments"), ("orders", "refunds"), TOPICS, ()])


def lasting_state(group: ConsumerGroup) -> dict[str, object]:
    return {name: getattr(group, name) for name in ConsumerGroup.__slots__}


class Groups(RuleBasedStateMachine):
    @initialize(interval_ms=st.sampled_from([0, 0, 1000]), consumers=st.integers(0, 3))
    def start(self, interval_ms: int, consumers: int) -> None:
        self.shard = ConsumerShard({"group.consumer.assignment.interval.ms": str(interval_ms)})
        self.consumers: list[SimConsumer] = []
        self.sent: list[ConsumerGroupHeartbeatRequest] = []
        self.group_epoch = 0
        self.member_epochs: dict[str, int] = {}
        self.names = 0
        self.shard.put_topic("orders", 4)
        for number in range(consumers):
            self.come(("orders",), None, number == 1, 900_000)
            self.beat([0, 1, 0, 1, 2])

    # --- Consumers

    @rule(
        topics=SUBSCRIPTIONS,
        regex=st.sampled_from([None, None, None, None, ".*s", "(orders|refunds)"]),
        is_static=st.booleans(),
        patience_ms=st.sampled_from([20_000, 900_000]),
    )
    def come(self, topics: tuple[str, ...], regex: str | None, is_static: bool, patience_ms: int) -> None:
        if len(self.consumers) < 5:
            self.names += 1
            name = f"c{self.names}"
            instance_id = f"static-{name}" if is_static else None
            self.consumers.append(SimConsumer(name, topics, regex, instance_id, patience_ms, member_id=f"{name}-0"))
            self._exchange(self.consumers[-1])

    @rule(order=st.lists(st.integers(0, 4), min_size=1, max_size=8))
    def beat(self, order: list[int]) -> None:
        for number in order:
            if number < len(self.consumers):
                self._exchange(self.consumers[number])

    @rule(order=st.lists(st.integers(0, 4), min_size=1, max_size=8), slow=st.integers(0, 4))
    def beat_while_one_does_not_give_up(self, order: list[int], slow: int) -> None:
        for number in order:
            if number < len(self.consumers):
                self._exchange(self.consumers[number], gives_up=number != slow)

    @rule(data=st.data(), arrives=st.booleans())
    def beat_over_a_bad_network(self, data: st.DataObject, arrives: bool) -> None:
        """The request or its answer is lost."""
        if self.consumers:
            consumer = data.draw(st.sampled_from(self.consumers))
            request = consumer.next_request()
            if arrives:
                self._deliver(request)
            else:
                self.sent.append(request)
            consumer.full = True

    @rule(picks=st.lists(st.integers(0, 1000), min_size=1, max_size=5))
    def requests_arrive_late_or_once_more(self, picks: list[int]) -> None:
        for pick in picks if self.sent else ():
            request = self.sent[-1 - pick % len(self.sent)]
            sender = next((each for each in self.consumers if each.member_id == request.member_id), None)
            if sender is None or not _is_told_apart_by_order_alone(request, sender):
                self.shard.heartbeat(request)

    @rule(number=st.integers(0, 4), kind=st.sampled_from(["subscribe", "leave", "restart", "crash"]), data=st.data())
    def a_consumer_changes(self, number: int, kind: str, data: st.DataObject) -> None:
        if number >= len(self.consumers):
            return
        consumer = self.consumers[number]
        if kind == "subscribe":
            consumer.topics = consumer.new_topics = data.draw(SUBSCRIPTIONS)
        elif kind == "restart":
            self._restart(consumer)
        else:
            del self.consumers[number]
            if kind == "leave":
                self._deliver(beat(consumer.member_id, -1, instance_id=consumer.instance_id))

    def _restart(self, consumer: SimConsumer) -> None:
        """A static member returns under another member id."""
        if consumer.instance_id is not None and consumer.epoch > 0:
            self._deliver(beat(consumer.member_id, -2, instance_id=consumer.instance_id))
            consumer.lose_everything()
            consumer.incarnation += 1
            consumer.member_id = f"{consumer.name}-{consumer.incarnation}"
            self._exchange(consumer)

    # --- Events in the cluster

    @rule(
        kind=st.sampled_from(["time", "wall clock", "coordinator", "compaction", "topic grows", "topic goes"]),
        duration_ms=st.sampled_from([10, 1000, 5000, 20_000, 60_000]),
        jump_ms=st.sampled_from([-3_600_000, -2000, 2000, 3_600_000]),
        topic=st.sampled_from(TOPICS),
        partitions=st.integers(1, 5),
    )
    def the_world_changes(self, kind: str, duration_ms: int, jump_ms: int, topic: str, partitions: int) -> None:
        if kind == "time":
            self._wait(duration_ms)
        elif kind == "wall clock":
            self.shard.clock.jump_wall(jump_ms)
        elif kind == "coordinator":
            self._reload(self.shard.log)
        elif kind == "compaction":
            # Only the last record of each key is left, at its offset; later the tombstones are removed too.
            last: dict[bytes | None, LogEntry] = {}
            for entry in self.shard.log:
                last.pop(entry.key, None)
                last[entry.key] = entry
            self._reload([entry for entry in last.values() if entry.value is not None or partitions > 2])
        elif kind == "topic grows":
            self.shard.put_topic(topic, partitions)
        elif self.shard.image.topic(topic) is not None:
            self.shard.delete_topic(topic)

    def _reload(self, log: list[LogEntry]) -> None:
        """Another coordinator replays the log and has the same state."""
        before = self._group()
        self.shard.log = log
        self.shard.reload()
        after = self._group()
        assert (before and lasting_state(before)) == (after and lasting_state(after))

    def _wait(self, duration_ms: int) -> None:
        self.shard.wait(duration_ms)
        now_ms = self.shard.clock.monotonic_ms()
        group = self._group()
        for consumer in self.consumers:
            # Clients notice by themselves that their session or rebalance timeout has passed.
            is_fenced = group is None or consumer.member_id not in group.members
            if consumer.epoch > 0 and (is_fenced or now_ms >= consumer.alive_until_ms):
                consumer.lose_everything()

    @rule()
    def a_turn_passes(self) -> None:
        """Runs a turn of a target that is computed in turns."""
        if any(key == ("target", GROUP) for key in self.shard.timers.keys):
            self.shard.clock.step()

    # --- Promises

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owners: dict[tuple[bytes, int], str] = {}
        for consumer in getattr(self, "consumers", []):
            for partition in consumer.owned:
                assert partition not in owners, f"{partition} belongs to {owners[partition]} and {consumer.name}"
                owners[partition] = consumer.name

    @invariant()
    def epochs_never_go_back(self) -> None:
        group = self._group()
        if group is None:
            return
        assert group.group_epoch >= self.group_epoch
        assert group.group_epoch >= group.assignment_epoch
        self.group_epoch = group.group_epoch
        for member_id, member in group.members.items():
            epoch = member.current.member_epoch
            assert epoch < 0 or epoch >= self.member_epochs.get(member_id, 0)
            assert epoch <= group.assignment_epoch
        self.member_epochs = {member_id: member.current.member_epoch for member_id, member in group.members.items()}

    @precondition(lambda self: self.consumers)
    @rule()
    def left_alone_the_group_comes_to_rest(self) -> None:
        for _ in range(40):
            for consumer in self.consumers:
                self._exchange(consumer)
            # Shorter than a session; members that crashed are detected meanwhile.
            self._wait(5000)
        group = self._group()
        assert group is not None
        assert group.state_name == "Stable"
        assert sorted(group.members) == sorted(consumer.member_id for consumer in self.consumers)
        wanted = {
            (topic.topic_id, partition)
            for topic in self.shard.image.topics_by_name.values()
            for partition in topic.partitions
            if any(consumer.reads(topic.name) for consumer in self.consumers)
        }
        assert {partition for consumer in self.consumers for partition in consumer.owned} == wanted

    # --- Helpers

    def _group(self) -> ConsumerGroup | None:
        if not hasattr(self, "shard"):
            return None
        group = self.shard.groups.get(GROUP)
        return group if isinstance(group, ConsumerGroup) else None

    def _exchange(self, consumer: SimConsumer, *, gives_up: bool = True) -> None:
        self.sent.append(consumer.next_request())
        consumer.exchange(self.shard, gives_up=gives_up)

    def _deliver(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse | ApiError:
        if request.member_epoch >= 0:
            self.sent.append(request)
        return self.shard.heartbeat(request)


def _is_told_apart_by_order_alone(request: ConsumerGroupHeartbeatRequest, sender: SimConsumer) -> bool:
    """Whether nothing in the request shows that it is outdated, so that only the connection keeps the order.

    This is the case within an epoch, and for subscriptions: a member may subscribe to other topics when it joins again.
    """
    names = request.subscribed_topic_names
    return sender.epoch == request.member_epoch or (names is not None and names != list(sender.topics))


class GroupsWithTargetsInTurns(Groups):
    """Every target takes many turns, as in a very large group, and anything may happen between them."""

    def __init__(self) -> None:
        super().__init__()
        self._limits = pytest.MonkeyPatch()
        self._limits.setattr(target, "_MOST_AT_ONCE", 0)
        self._limits.setattr(turns, "WORK_PER_TURN", 1)

    def teardown(self) -> None:
        self._limits.undo()


TestRandomSchedulesWithTargetsInTurns = GroupsWithTargetsInTurns.TestCase
TestRandomSchedulesWithTargetsInTurns.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestRandomSchedules = Groups.TestCase
TestRandomSchedules.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
