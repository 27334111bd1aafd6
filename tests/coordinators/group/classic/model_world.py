"""Consumers, a coordinator, and an unreliable network between them; and the invariants that must hold."""

from typing import Any

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.machine import Caller
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.group_records import GroupMetadataValue
from quire.protocol.messages.heartbeat import HeartbeatRequest
from quire.protocol.messages.join_group import JoinGroupRequest
from quire.protocol.messages.leave_group import LeaveGroupRequest
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.coordinators.group.classic.classic_machine import ClassicMachine, Request, classic_shard
from tests.coordinators.group.classic.model_consumer import GROUP, PARTITIONS, Attempt, ModelConsumer

CONSUMERS = 5
SETTLING_MS = 180_000


class ModelWorld:
    def __init__(self) -> None:
        self.shard = classic_shard({"group.initial.rebalance.delay.ms": "500"})
        self.clock = self.shard.clock
        self.consumers: list[ModelConsumer] = []
        self.on_its_way: list[Attempt] = []
        self.is_calm = False
        """Requests arrive at once, even while a response is being sent."""
        self._owners: dict[int, dict[int, str]] = {}
        """By generation and partition."""
        self._last_assigned = 0

    # --- Events

    def start(self, number: int) -> None:
        """Versions before 4 have no MEMBER_ID_REQUIRED. Every third consumer is static, and two processes may use one
        instance id."""
        version = (9, 3, 5, 8)[number % 4]
        instance_id = f"static-{number % 2}" if number % 3 == 0 and version >= 5 else None
        consumer = ModelConsumer(number, self.clock, self._send, version=version, instance_id=instance_id)
        self.consumers.append(consumer)
        consumer.start()

    def alive(self) -> list[ModelConsumer]:
        return [consumer for consumer in self.consumers if consumer.is_alive]

    def arrive(self, index: int) -> None:
        self._deliver(self.on_its_way.pop(index))

    def arrive_again(self, index: int) -> None:
        """As a duplicate: its response is lost."""
        attempt = self.on_its_way[index]
        self._handle(attempt.request, attempt.consumer)

    def lose_answer(self, number: int) -> None:
        """The connection of a waiting consumer breaks."""
        attempt = self.alive()[number].current
        if attempt is not None and attempt.answer is not None:
            attempt.answer.abandon()
            attempt.answer = None

    def calm_down(self) -> None:
        """From now on nothing is lost, and all members have time to join."""
        self.is_calm = True
        self.shard.holding = False
        self.shard.commit()
        while self.on_its_way:
            self.arrive(0)
        for _ in range(SETTLING_MS // 1000):
            self.shard.wait(1000)
            self.check_group()

    # --- Delivery

    def _send(self, attempt: Attempt) -> None:
        if self.is_calm:
            self._deliver(attempt)
        else:
            self.on_its_way.append(attempt)

    def _deliver(self, attempt: Attempt) -> None:
        answer = self._handle(attempt.request, attempt.consumer)
        if attempt.is_given_up:
            answer.abandon()
            return
        attempt.answer = answer
        answer.when_done(lambda response: self._answered(attempt, response))

    def _handle(self, request: Request, consumer: ModelConsumer) -> Pending[Any]:
        version = {JoinGroupRequest: consumer.version, SyncGroupRequest: 5, HeartbeatRequest: 4, LeaveGroupRequest: 5}
        caller = Caller(f"client{consumer.number}", "host", version[type(request)])
        return self.shard.run(lambda now_ms: self.shard.machine.handle(request, caller, now_ms))

    def _answered(self, attempt: Attempt, response: object) -> None:
        if isinstance(attempt.request, SyncGroupRequest) and isinstance(response, SyncGroupResponse):
            self._check_assignment(attempt.consumer.identity, attempt.request.generation_id, response.assignment)
        if not attempt.is_given_up:
            attempt.consumer.hear(response)

    # --- Invariants

    def _check_assignment(self, identity: str, generation: int, assignment: bytes) -> None:
        assert generation >= self._last_assigned, f"generation {generation} after {self._last_assigned}"
        self._last_assigned = generation
        owners = self._owners.setdefault(generation, {})
        for partition in map(int, filter(None, assignment.split(b","))):
            owner = owners.setdefault(partition, identity)
            assert owner == identity, f"{owner} and {identity} both own {partition} in generation {generation}"

    def check_log(self) -> None:
        """Generations increase, and each has one assignment, also if a static member is replaced."""
        last = -1
        assigned: dict[int, dict[str, bytes]] = {}
        for entry in self.shard.log:
            value = ClassicMachine.record_types.decode(entry.key, entry.value).value
            assert isinstance(value, GroupMetadataValue)
            assert value.generation >= last
            last = value.generation
            owned = {member.group_instance_id or member.member_id: member.assignment for member in value.members}
            assert assigned.setdefault(value.generation, owned) == owned

    def check_group(self) -> None:
        group = self.shard.machine.groups.get(GROUP)
        if group is None:
            return
        assert isinstance(group, ClassicGroup)
        members = list(group.members.values())
        assert group.awaiting_join_count == sum(member.awaiting_join is not None for member in members)
        assert group.static_members == {m.instance_id: m.member_id for m in members if m.instance_id is not None}
        assert (group.leader_id in group.members) == bool(members)
        assert not group.pending_members.keys() & group.members.keys()
        assert group.pending_sync_members.keys() <= group.members.keys()
        if group.state in (ClassicState.EMPTY, ClassicState.PREPARING_REBALANCE):
            assert not group.pending_sync_members
        if group.state is not ClassicState.COMPLETING_REBALANCE:
            assert not any(member.awaiting_sync for member in members)
        if group.state is not ClassicState.PREPARING_REBALANCE:
            assert bool(members) == (group.state is not ClassicState.EMPTY)
        self._check_timers(group)

    def _check_timers(self, group: ClassicGroup) -> None:
        """Every wait has an end, and no state of removed members is left."""
        scheduled = {key for key in self.shard.timers.keys if isinstance(key, tuple)}
        known = {("classic session", GROUP, member_id) for member_id in (*group.members, *group.pending_members)}
        assert {key for key in scheduled if key[0] == "classic session"} <= known
        for member in group.members.values():
            if member.may_expire:
                assert member.session_key in scheduled
        for member_id in group.pending_members:
            assert ("classic session", GROUP, member_id) in scheduled
        is_preparing = group.state is ClassicState.PREPARING_REBALANCE
        assert (("classic join", GROUP) in scheduled) == is_preparing
        assert ("classic sync", GROUP) in scheduled or not group.pending_sync_members

    def check_everybody_is_in(self) -> None:
        """Every group with live, responsive members becomes stable, and reads every partition once."""
        group = self.shard.machine.groups.get(GROUP)
        alive = self.alive()
        if not alive:
            assert group is None or group.is_empty
            return
        assert isinstance(group, ClassicGroup)
        assert group.state is ClassicState.STABLE
        assert sorted(group.members) == sorted(consumer.member_id for consumer in alive)
        assert {consumer.assigned_in for consumer in alive} == {group.generation}
        assert sorted(number for consumer in alive for number in consumer.assignment) == list(range(PARTITIONS))


REASONS = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
