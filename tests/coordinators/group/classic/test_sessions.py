"""Sessions of classic members: heartbeats renew them, waiting members keep them, abandoned ids expire."""

from quire.coordinators.group.classic.sessions import NEW_MEMBER_JOIN_TIMEOUT_MS
from quire.protocol.errors import ErrorCode
from tests.coordinators.group.classic.asking import beat, group_of, join, refusal, shard_at_once, stable


def test_a_heartbeat_renews_the_session() -> None:
    shard = shard_at_once()
    (member_id,) = stable(shard)
    for _ in range(3):
        shard.wait(9_999)
        assert beat(shard, member_id, 1).value.error_code == ErrorCode.NONE
    shard.wait(10_000)
    assert refusal(beat(shard, member_id, 1)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_waits_in_the_join_phase_does_not_expire() -> None:
    shard = shard_at_once()
    leader, _ = stable(shard, 2)
    waiting = join(shard, leader)
    shard.wait(9_999)
    assert not waiting.done and leader in group_of(shard).members


def test_a_new_member_that_waits_expires_after_a_long_time() -> None:
    shard = shard_at_once()
    leader, follower = stable(shard, 2, rebalance_timeout_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    waiting = join(shard)
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5_000):
        for member_id in (leader, follower):
            assert beat(shard, member_id, 1).value.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        shard.wait(5_000)
    assert refusal(waiting) is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(group_of(shard).members) == [leader, follower]


def test_an_id_that_is_not_used_expires() -> None:
    shard = shard_at_once()
    join(shard, version=4)
    shard.wait(9_999)
    assert group_of(shard).pending_members
    shard.wait(1)
    assert not group_of(shard).pending_members


def test_timers_go_by_the_monotonic_clock() -> None:
    """No member expires because an operator set the time."""
    shard = shard_at_once()
    (member_id,) = stable(shard)
    shard.clock.jump_wall(3_600_000)
    shard.wait(9_000)
    assert beat(shard, member_id, 1).value.error_code == ErrorCode.NONE
    shard.clock.jump_wall(-7_200_000)
    shard.wait(10_000)
    assert group_of(shard).is_empty
