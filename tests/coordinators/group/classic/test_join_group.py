"""JoinGroup, beyond the transcripts: limits, records that do not fit, repeated returns."""

from quire.coordinators.group.classic.join_group import MEMBERS_LIMIT, PENDING_LIMIT, SIZE_LIMIT_RECORDS
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.join_group import JoinGroupRequestProtocol
from tests.coordinators.group.classic.asking import beat, group_of, join, refusal, shard_at_once, stable, sync


def test_ids_that_were_given_out_are_bounded_and_the_oldest_goes_first() -> None:
    shard = shard_at_once()
    ids = [join(shard, version=4).value.member_id for _ in range(PENDING_LIMIT + 2)]
    assert list(group_of(shard).pending_members) == ids[2:]
    assert len(shard.timers.keys) == PENDING_LIMIT
    assert refusal(join(shard, ids[0], version=4)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert not join(shard, ids[2], version=4).done


def test_the_number_of_members_has_a_limit_for_any_setting() -> None:
    shard = shard_at_once()
    for _ in range(MEMBERS_LIMIT):
        join(shard)
    assert join(shard).value.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    shard.wait(0)
    assert join(shard).value.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_the_metadata_of_members_is_bounded_and_existing_members_stay() -> None:
    shard = shard_at_once(message_max_bytes="10000")
    half = SIZE_LIMIT_RECORDS * 10_000 // 2
    (member,) = stable(shard, metadata=bytes(100))
    assert refusal(join(shard, metadata=bytes(2 * half))) is ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(join(shard, member, metadata=bytes(2 * half))) is ErrorCode.MESSAGE_TOO_LARGE
    assert beat(shard, member, 1).value.error_code == ErrorCode.NONE
    assert not join(shard, metadata=bytes(half)).done
    assert refusal(join(shard, metadata=bytes(half))) is ErrorCode.MESSAGE_TOO_LARGE
    assert member in group_of(shard).members and len(group_of(shard).members) == 2


def test_many_protocols_count_although_none_says_anything() -> None:
    shard = shard_at_once(message_max_bytes="10000")
    many = [JoinGroupRequestProtocol(name=str(number), metadata=b"") for number in range(1_000)]
    assert refusal(join(shard, protocols=many)) is ErrorCode.MESSAGE_TOO_LARGE


def test_the_size_of_a_group_is_the_sum_of_its_members_sizes() -> None:
    shard = shard_at_once()
    ids = stable(shard, 3, metadata=bytes(50))
    join(shard, ids[0], metadata=bytes(500))
    join(shard, instance_id="one", version=9)
    join(shard, instance_id="one", version=9, metadata=bytes(70))
    group = group_of(shard)
    assert group.size_bytes == sum(member.size_bytes for member in group.members.values()) > 700
    shard.wait(60_000)
    assert group.size_bytes == sum(member.size_bytes for member in group.members.values())
    shard.reload()
    assert group_of(shard).size_bytes == sum(member.size_bytes for member in group_of(shard).members.values())


def test_a_refused_join_leaves_no_group_behind() -> None:
    shard = shard_at_once()
    assert refusal(join(shard, protocol_type="")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refusal(join(shard, protocols=[])) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refusal(join(shard, "unknown")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(join(shard, group_id="")) is ErrorCode.INVALID_GROUP_ID
    assert refusal(join(shard, session_timeout_ms=5_999)) is ErrorCode.INVALID_SESSION_TIMEOUT
    assert not shard.machine.groups


def test_a_protocol_that_is_named_twice_counts_once() -> None:
    shard = shard_at_once()
    twice = [
        JoinGroupRequestProtocol(name="range", metadata=b"1"),
        JoinGroupRequestProtocol(name="range", metadata=b"2"),
    ]
    stable(shard, protocols=twice)
    (member,) = group_of(shard).members.values()
    assert member.protocols == {"range": b"1"}


def test_version_0_has_no_rebalance_timeout_and_gets_the_session_timeout() -> None:
    shard = shard_at_once()
    join(shard, version=0, rebalance_timeout_ms=-1)
    assert group_of(shard).rebalance_timeout_ms == 10_000


def test_a_static_member_that_returns_with_too_much_metadata_changes_nothing() -> None:
    shard = shard_at_once()
    (old,) = stable(shard, instance_id="one", version=9)
    shard.max_batch_bytes = 1_000
    assert refusal(join(shard, instance_id="one", version=9, metadata=bytes(2_000))) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert list(group_of(shard).members) == [old]
    assert group_of(shard).leader_id == old
    assert beat(shard, old, 1).value.error_code == ErrorCode.NONE
    shard.wait(10_000)
    assert group_of(shard).is_empty


def test_a_static_member_rejoins_during_a_rebalance_although_the_group_is_larger_than_the_log_takes_by_now() -> None:
    shard = shard_at_once()
    answers = [join(shard, instance_id=name, version=9, metadata=bytes(500)) for name in ("one", "two")]
    shard.wait(0)
    one, two = (answer.value.member_id for answer in answers)
    sync(shard, one, 1)
    sync(shard, two, 1)
    shard.max_batch_bytes = 1_000
    waiting = join(shard, one, instance_id="one", version=9, metadata=bytes(100))
    returned = join(shard, instance_id="two", version=9, metadata=bytes(100))
    assert waiting.value.generation_id == returned.value.generation_id == 2
    assert refusal(beat(shard, two, 1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert sync(shard, one, 2, {returned.value.member_id: b"its own"}).value.error_code == ErrorCode.NONE
    assert sync(shard, returned.value.member_id, 2).value.assignment == b"its own"


def test_a_static_member_may_return_again_before_the_first_return_is_committed() -> None:
    shard = shard_at_once()
    stable(shard, instance_id="one", version=9)
    shard.holding = True
    first = join(shard, instance_id="one", version=9)
    second = join(shard, instance_id="one", version=9)
    shard.commit()
    assert refusal(first) is ErrorCode.FENCED_INSTANCE_ID
    assert second.value.error_code == ErrorCode.NONE
    assert list(group_of(shard).members) == [second.value.member_id]
    assert group_of(shard).awaiting_join_count == 0


def test_a_static_member_that_rejoins_while_a_rebalance_starts_joins_it() -> None:
    shard = shard_at_once()
    answers = [join(shard, instance_id=name, version=9) for name in ("one", "two")]
    shard.wait(0)
    one = answers[0].value.member_id
    sync(shard, one, 1)
    shard.holding = True
    returned = join(shard, instance_id="two", version=9)
    leader = join(shard, one, instance_id="one", version=9)
    assert not returned.done
    shard.commit()
    assert returned.value.generation_id == leader.value.generation_id == 2


def test_an_empty_instance_id_is_not_the_same_as_none() -> None:
    shard = shard_at_once()
    (static,) = stable(shard, instance_id="", version=9)
    given = join(shard, version=9).value
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert not join(shard, given.member_id, version=9).done
    assert list(group_of(shard).members) == [static, given.member_id]
