"""The simulated shard of the coordinator tests: what it guarantees."""

from collections.abc import Sequence

from quire.coordinators.runtime.machine import MachineEnvironment
from quire.coordinators.runtime.record import Origin, RecordTypes, StateRecord
from quire.coordinators.runtime.result import CoordinatorResult
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue
from tests.coordinators.sim_shard import SimShard


class Generations:
    """Remembers the generation of every group, and nothing else."""

    record_types = RecordTypes({2: GroupMetadataKey}, {2: GroupMetadataValue})

    def __init__(self, environment: MachineEnvironment) -> None:
        self.environment = environment
        self.known: dict[str, int] = {}
        self.refused_with: ErrorCode | None = None

    def replay(self, record: StateRecord, origin: Origin) -> None:
        assert isinstance(record.key, GroupMetadataKey)
        assert isinstance(record.value, GroupMetadataValue)
        self.known[record.key.group] = record.value.generation

    def replay_end(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        pass

    def loaded(self, now_ms: int) -> None:
        pass

    def unloaded(self, reason: ErrorCode) -> None:
        self.refused_with = reason

    def metadata_changed(self, topics: Sequence[str], now_ms: int) -> None:
        pass

    def bump(self, group: str) -> CoordinatorResult[int]:
        generation = self.known.get(group, 0) + 1
        value = GroupMetadataValue(protocol_type="consumer", generation=generation, protocol=None, leader=None)
        return CoordinatorResult(generation, [StateRecord(GroupMetadataKey(group=group), value, 3)])

    def bump_later(self, group: str, delay_ms: int) -> CoordinatorResult[None]:
        def operation(now_ms: int) -> CoordinatorResult[None]:
            bumped = self.bump(group)
            return CoordinatorResult(None, bumped.records)

        self.environment.timers.schedule(group, delay_ms, operation)
        return CoordinatorResult(None)


def test_an_answer_waits_for_its_records_although_the_machine_has_taken_them_over() -> None:
    shard = SimShard(Generations)
    shard.holding = True
    answer = shard.run(lambda now_ms: shard.machine.bump("g"))
    assert not answer.done and shard.machine.known == {"g": 1}
    shard.commit()
    assert answer.value == 1


def test_an_answer_without_records_waits_for_what_was_written_before_it() -> None:
    shard = SimShard(Generations)
    shard.holding = True
    shard.run(lambda now_ms: shard.machine.bump("g"))
    answer = shard.run(lambda now_ms: CoordinatorResult(shard.machine.known["g"]))
    assert not answer.done
    shard.commit()
    assert answer.value == 1


def test_after_a_failed_append_a_new_machine_knows_what_was_committed() -> None:
    shard = SimShard(Generations)
    shard.run(lambda now_ms: shard.machine.bump("g"))
    shard.holding = True
    answer = shard.run(lambda now_ms: shard.machine.bump("g"))
    old = shard.machine
    shard.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert old.refused_with is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert isinstance(answer.value, ApiError) and answer.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shard.machine.known == {"g": 1}


def test_unacknowledged_records_may_still_be_in_the_log() -> None:
    shard = SimShard(Generations)
    shard.holding = True
    shard.run(lambda now_ms: shard.machine.bump("g"))
    shard.fail(kept=1)
    assert shard.machine.known == {"g": 1}


def test_timers_fire_in_virtual_time_and_not_after_a_reload() -> None:
    shard = SimShard(Generations)
    shard.run(lambda now_ms: shard.machine.bump_later("g", 100))
    shard.wait(99)
    assert shard.machine.known == {}
    shard.wait(1)
    assert shard.machine.known == {"g": 1}
    shard.run(lambda now_ms: shard.machine.bump_later("g", 100))
    shard.reload()
    shard.wait(1000)
    assert shard.machine.known == {"g": 1}
