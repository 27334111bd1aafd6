"""Consumers of both protocols join and leave one group, which changes its protocol accordingly.

The promises are those of `test_random_schedules`, through every change of protocol: no partition has two owners, the
number that is the group's epoch or generation never goes back, and if nothing more happens, the group becomes stable
with all its partitions assigned. Consumers of the classic protocol are eager, and give up everything before they join,
or cooperative, and give up only what they are no longer assigned, when they are told.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.pending import Pending
from tests.coordinators.group.consumer.classic_consumer import ClassicConsumer
from tests.coordinators.group.consumer.consumer_shard import GROUP, ConsumerShard, beat
from tests.coordinators.group.consumer.sim_consumer import SimConsumer

CLASSIC_SESSION_MS = 10_000


class OldConsumer:
    """A consumer of the classic protocol, step by step: it joins, asks for its assignment, and sends heartbeats."""

    def __init__(self, shard: ConsumerShard, name: str, instance_id: str | None, is_cooperative: bool) -> None:
        self.client = ClassicConsumer(shard, name, ("orders",), instance_id, is_cooperative)
        self.joining: Pending[Any] | None = None
        self.syncing: Pending[Any] | None = None
        self.must_join = True
        self.alive_until_ms = 0.0

    def step(self) -> None:
        self.alive_until_ms = self.client.shard.clock.monotonic_ms() + CLASSIC_SESSION_MS
        if self.waits:
            return
        if self.joining is not None:
            _, self.syncing = self.client.ask_for_assignment(self.joining.value)
            self.joining, self.must_join = None, self.syncing is None
        elif self.syncing is not None:
            told = self.client.take_assignment(self.syncing.value)
            self.syncing, self.must_join = None, not told.startswith("generation") or self.client.gave_up
        elif self.must_join:
            self.joining = self.client.join()
        else:
            self.must_join = self.client.beat() != "stay"

    @property
    def waits(self) -> bool:
        return any(pending is not None and not pending.done for pending in (self.joining, self.syncing))

    def lose_everything(self) -> None:
        self.client.has, self.client.generation = {}, -1
        self.joining, self.syncing, self.must_join = None, None, True


class Migrations(RuleBasedStateMachine):
    @initialize(old=st.integers(0, 2), new=st.integers(0, 2), is_cooperative=st.booleans())
    def start(self, old: int, new: int, is_cooperative: bool) -> None:
        self.is_cooperative = is_cooperative
        self.shard = ConsumerShard(
            {"group.consumer.assignment.interval.ms": "0", "group.initial.rebalance.delay.ms": "0"}
        )
        self.shard.put_topic("orders", 4)
        self.old: list[OldConsumer] = []
        self.new: list[SimConsumer] = []
        self.names = 0
        self.number = 0
        for _ in range(old):
            self.an_old_one_comes(True)
        self.everybody_goes_on(6)
        for _ in range(new):
            self.a_new_one_comes(False)

    @rule(is_static=st.booleans())
    def an_old_one_comes(self, is_static: bool) -> None:
        if len(self.old) < 3:
            self.names += 1
            self._add_old(f"so{self.names}" if is_static else None)

    @rule(is_static=st.booleans())
    def a_new_one_comes(self, is_static: bool) -> None:
        if len(self.new) < 3:
            self.names += 1
            instance_id = f"sn{self.names}" if is_static else None
            consumer = SimConsumer(f"n{self.names}", ("orders",), None, instance_id, 60_000, f"n{self.names}-0")
            self.new.append(consumer)
            consumer.exchange(self.shard)

    @rule(number=st.integers(0, 2))
    def an_old_one_leaves(self, number: int) -> None:
        if number < len(self.old):
            self.old.pop(number).client.leave()
            self._wait(0)

    @rule(number=st.integers(0, 2))
    def a_new_one_leaves(self, number: int) -> None:
        if number < len(self.new):
            consumer = self.new.pop(number)
            self.shard.heartbeat(beat(consumer.member_id, -1, instance_id=consumer.instance_id))
            self._wait(0)

    @rule(steps=st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=8))
    def some_go_on(self, steps: list[tuple[bool, int]]) -> None:
        for is_old, number in steps:
            if is_old and number < len(self.old):
                self.old[number].step()
            elif not is_old and number < len(self.new):
                self.new[number].exchange(self.shard)

    @rule(rounds=st.integers(1, 3))
    def everybody_goes_on(self, rounds: int) -> None:
        for _ in range(rounds):
            for old in self.old:
                old.step()
            for new in self.new:
                new.exchange(self.shard)
            self._wait(0)

    @rule(number=st.integers(0, 2), to_new=st.booleans())
    def a_static_one_changes_its_protocol(self, number: int, to_new: bool) -> None:
        """A static member stops with or without a request, and returns under the same instance id."""
        if to_new and number < len(self.old) and self.old[number].client.instance_id is not None:
            instance_id = self.old.pop(number).client.instance_id
            self.names += 1
            consumer = SimConsumer(f"n{self.names}", ("orders",), None, instance_id, 60_000, f"n{self.names}-0")
            self.new.append(consumer)
            consumer.exchange(self.shard)
        elif not to_new and number < len(self.new) and self.new[number].instance_id is not None:
            consumer = self.new.pop(number)
            self.shard.heartbeat(beat(consumer.member_id, -2, instance_id=consumer.instance_id))
            self.names += 1
            self._add_old(consumer.instance_id)

    @rule(duration_ms=st.sampled_from([0, 1000, 5000, 60_000]))
    def time_passes(self, duration_ms: int) -> None:
        self._wait(duration_ms)

    @rule()
    def the_coordinator_moves(self) -> None:
        self.shard.reload()

    # --- Promises

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owners: dict[int, str] = {}
        for name, partitions in self._owned():
            for partition in partitions:
                assert partition not in owners, f"{partition} belongs to {owners[partition]} and {name}"
                owners[partition] = name

    @invariant()
    def the_number_never_goes_back(self) -> None:
        group = self.shard.groups.get(GROUP) if hasattr(self, "shard") else None
        if isinstance(group, ConsumerGroup):
            number = group.group_epoch
        elif isinstance(group, ClassicGroup):
            # A generation counts once its assignment is written: until then another coordinator would not know it.
            number = max(group.assigned_generation, 0)
        else:
            return
        assert number >= self.number or group.is_empty
        # Without members it may be deleted, or start again with the other protocol.
        self.number = 0 if group.is_empty else number

    @precondition(lambda self: self.old or self.new)
    @rule()
    def left_alone_the_group_comes_to_rest(self) -> None:
        for _ in range(60):
            self.everybody_goes_on(2)
            self._wait(2000)
        group = self.shard.groups[GROUP]
        assert group.state_name == "Stable"
        assert group.type.value == ("consumer" if self.new else "classic")
        assert sorted(partition for _, partitions in self._owned() for partition in partitions) == [0, 1, 2, 3]

    # --- Helpers

    def _owned(self) -> list[tuple[str, set[int]]]:
        if not hasattr(self, "old"):
            return []
        of_old = [(old.client.name, old.client.has.get("orders", set())) for old in self.old]
        return of_old + [(new.name, {partition for _, partition in new.owned}) for new in self.new]

    def _add_old(self, instance_id: str | None) -> None:
        self.old.append(OldConsumer(self.shard, f"o{self.names}", instance_id, self.is_cooperative))

    def _wait(self, duration_ms: int) -> None:
        self.shard.wait(duration_ms)
        now_ms = self.shard.clock.monotonic_ms()
        group = self.shard.groups.get(GROUP)
        members = group.members if isinstance(group, ClassicGroup | ConsumerGroup) else {}
        if not members:
            self.number = 0
        for old in self.old:
            is_out = now_ms >= old.alive_until_ms or old.client.member_id not in members
            if old.client.generation >= 0 and not old.waits and is_out:
                old.lose_everything()
        for new in self.new:
            if new.epoch > 0 and (now_ms >= new.alive_until_ms or new.member_id not in members):
                new.lose_everything()


TestRandomMigrations = Migrations.TestCase
TestRandomMigrations.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)
