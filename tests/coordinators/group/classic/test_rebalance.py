"""A rebalance: the join phase ends when all have joined or its time is over, and so does the sync phase."""

from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import CoordinatorResult
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from tests.coordinators.group.classic.asking import beat, group_of, join, refusal, shard_at_once, stable, sync
from tests.coordinators.group.classic.classic_machine import classic_shard


def member(member_id: str) -> MemberMetadata:
    return MemberMetadata(member_id=member_id, client_id="c", client_host="h", session_timeout=9_000)


def test_the_join_phase_of_an_empty_group_is_extended_while_members_join() -> None:
    shard = classic_shard({"group.initial.rebalance.delay.ms": "3000"})
    first = join(shard)
    shard.wait(2_999)
    second = join(shard)
    shard.wait(3_000)
    assert not first.done and not second.done
    shard.wait(3_000)
    assert first.value.generation_id == second.value.generation_id == 1


def test_the_join_phase_ends_as_soon_as_all_members_have_joined() -> None:
    shard = shard_at_once()
    leader, follower = stable(shard, 2)
    first = join(shard, leader)
    assert not first.done
    second = join(shard, follower)
    assert first.value.generation_id == second.value.generation_id == 2


def test_a_member_that_does_not_join_in_time_is_removed() -> None:
    shard = shard_at_once()
    leader, follower = stable(shard, 2, session_timeout_ms=300_000)
    joined = join(shard, leader)
    shard.wait(59_999)
    assert not joined.done
    shard.wait(1)
    assert [each.member_id for each in joined.value.members] == [leader]
    assert refusal(beat(shard, follower, 2)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_does_not_join_in_time_stays() -> None:
    shard = shard_at_once()
    (static,) = stable(shard, instance_id="one", version=9, session_timeout_ms=300_000)
    joined = join(shard, session_timeout_ms=300_000)
    shard.wait(60_000)
    assert joined.value.generation_id == 2
    assert list(group_of(shard).members) == [static, joined.value.member_id]


def test_a_member_that_does_not_sync_in_time_is_removed() -> None:
    shard = shard_at_once()
    answers = [join(shard, session_timeout_ms=300_000) for _ in range(2)]
    shard.wait(0)
    leader, follower = (answer.value.member_id for answer in answers)
    assert sync(shard, leader, 1).value.error_code == ErrorCode.NONE
    shard.wait(60_000)
    assert list(group_of(shard).members) == [leader]
    assert group_of(shard).state is ClassicState.PREPARING_REBALANCE
    assert refusal(beat(shard, follower, 1)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_during_the_sync_phase_recalls_members_that_wait_for_the_assignment() -> None:
    shard = shard_at_once()
    answers = [join(shard) for _ in range(2)]
    shard.wait(0)
    leader, follower = (answer.value.member_id for answer in answers)
    waiting = sync(shard, follower, 1)
    join(shard)
    assert refusal(waiting) is ErrorCode.REBALANCE_IN_PROGRESS
    assert refusal(sync(shard, leader, 1)) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_that_is_too_large_after_a_restart_shrinks_by_a_rebalance() -> None:
    shard = shard_at_once()
    ids = stable(shard, 3)
    shard.config.static["group.max.size"] = 2
    shard.config.apply_dynamic({}, {})
    shard.reload()
    assert group_of(shard).state_name == "PreparingRebalance"
    answers = [join(shard, id_) for id_ in ids]
    assert [answer.value.error_code for answer in answers] == [0, 0, ErrorCode.GROUP_MAX_SIZE_REACHED]


def test_a_group_that_is_written_without_a_leader_rebalances_under_any_coordinator() -> None:
    shard = shard_at_once()
    value = GroupMetadataValue(
        protocol_type="consumer", generation=7, protocol="range", leader=None, members=[member("a"), member("b")]
    )
    shard.run(lambda now_ms: CoordinatorResult(None, [StateRecord(GroupMetadataKey(group="g"), value, 3)]))
    for _ in range(2):
        shard.wait(0)
        assert beat(shard, "a", 7).value.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        shard.reload()
    joined = join(shard, "a")
    shard.wait(9_000)
    assert (joined.value.leader, joined.value.generation_id) == ("a", 8)
    assert [member.member_id for member in joined.value.members] == ["a"]
