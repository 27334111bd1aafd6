"""SyncGroup, beyond the transcripts: assignments that do not fit."""

from quire.coordinators.runtime.machine import Caller
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.coordinators.group.classic.asking import beat, group_of, join, refusal, shard_at_once, stable, sync


def test_an_assignment_too_large_to_be_written_fails_for_all_and_starts_a_rebalance() -> None:
    shard = shard_at_once()
    answers = [join(shard) for _ in range(2)]
    shard.wait(0)
    leader, follower = (answer.value.member_id for answer in answers)
    shard.max_batch_bytes = 1_000
    waiting = sync(shard, follower, 1)
    assert refusal(sync(shard, leader, 1, {leader: bytes(2_000)})) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert refusal(waiting) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not shard.log
    assert beat(shard, follower, 1).value.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    for member_id in (leader, follower):
        join(shard, member_id)
    assert sync(shard, leader, 2, {leader: b"less"}).value.assignment == b"less"


def test_members_that_the_leader_forgets_get_nothing_and_strangers_are_ignored() -> None:
    shard = shard_at_once()
    answers = [join(shard) for _ in range(2)]
    shard.wait(0)
    leader, follower = (answer.value.member_id for answer in answers)
    assert sync(shard, leader, 1, {leader: b"all", "stranger": b"much"}).value.assignment == b"all"
    assert sync(shard, follower, 1).value.assignment == b""
    assert list(group_of(shard).members) == [leader, follower]


def test_from_version_5_on_the_protocol_is_named() -> None:
    shard = shard_at_once()
    (member_id,) = stable(shard)

    def ask(name: str | None) -> Pending[SyncGroupResponse | ApiError]:
        request = SyncGroupRequest(
            group_id="g", generation_id=1, member_id=member_id, protocol_type="consumer", protocol_name=name
        )
        return shard.run(lambda now_ms: shard.machine.classic.sync(request, Caller("c", "h", 5), now_ms))

    assert refusal(ask(None)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refusal(ask("sticky")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert isinstance(ask("range").value, SyncGroupResponse)


def test_an_unknown_group_has_no_members() -> None:
    assert refusal(sync(shard_at_once(), "m", 1)) is ErrorCode.UNKNOWN_MEMBER_ID
