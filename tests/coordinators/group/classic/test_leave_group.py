"""LeaveGroup: who may leave, alone and together, and what the group does then."""

from typing import Any

from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.machine import Caller
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from tests.coordinators.group.classic.asking import beat, group_of, join, refusal, shard_at_once, stable
from tests.coordinators.group.classic.classic_machine import ClassicShard


def leave(shard: ClassicShard, *members: MemberIdentity) -> Pending[Any]:
    request = LeaveGroupRequest(group_id="g", members=list(members))
    return shard.run(lambda now_ms: shard.machine.classic.leave(request, Caller("c", "h", 3), now_ms))


def test_the_last_member_that_leaves_makes_the_group_empty() -> None:
    shard = shard_at_once()
    (member_id,) = stable(shard)
    left = leave(shard, MemberIdentity(member_id=member_id)).value
    assert [each.error_code for each in left.members] == [ErrorCode.NONE]
    assert group_of(shard).state is ClassicState.EMPTY and group_of(shard).generation == 2
    shard.reload()
    assert group_of(shard).is_empty and group_of(shard).generation == 2


def test_the_others_rebalance() -> None:
    shard = shard_at_once()
    leader, follower = stable(shard, 2)
    leave(shard, MemberIdentity(member_id=leader))
    assert beat(shard, follower, 1).value.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_waits_in_the_join_phase_is_answered() -> None:
    shard = shard_at_once()
    leader, _ = stable(shard, 2)
    waiting = join(shard, leader)
    leave(shard, MemberIdentity(member_id=leader))
    assert refusal(waiting) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_no_member_uses_yet_is_given_up() -> None:
    shard = shard_at_once()
    member_id = join(shard, version=4).value.member_id
    left = leave(shard, MemberIdentity(member_id=member_id)).value
    assert [each.error_code for each in left.members] == [ErrorCode.NONE]
    assert not group_of(shard).pending_members and not shard.timers.keys


def test_a_static_member_is_removed_by_its_instance_id_alone() -> None:
    shard = shard_at_once()
    stable(shard, instance_id="one", version=9)
    left = leave(shard, MemberIdentity(group_instance_id="one"), MemberIdentity(group_instance_id="two")).value
    assert [each.error_code for each in left.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert group_of(shard).is_empty


def test_leaving_an_unknown_group_names_the_members() -> None:
    shard = shard_at_once()
    request = LeaveGroupRequest(group_id="g", member_id="m")
    answer = shard.run(lambda now_ms: shard.machine.classic.leave(request, Caller("c", "h", 2), now_ms))
    assert isinstance(answer.value, LeaveGroupResponse)
    assert answer.value.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m"), MemberIdentity(member_id="n")])
    answer = shard.run(lambda now_ms: shard.machine.classic.leave(request, Caller("c", "h", 3), now_ms))
    assert isinstance(answer.value, LeaveGroupResponse)
    assert [(left.member_id, left.error_code) for left in answer.value.members] == [("m", 25), ("n", 25)]
