"""The group coordinator as a whole: behaviour that involves several of its parts."""

import pytest

from quire.coordinators.group.machine import GroupMachine
from quire.coordinators.runtime.machine import Caller
from quire.coordinators.runtime.record import UnknownRecordError, encode_key, tombstone
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.heartbeat import HeartbeatRequest
from quire.protocol.messages.leave_group import LeaveGroupRequest
from quire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from quire.protocol.messages.share_group_records import ShareGroupMetadataKey
from quire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordinators.group.group_shard import GroupShard
from tests.coordinators.group.two_topics import shard_of

MINUTE_MS = 60_000
NONE = ErrorCode.NONE


@pytest.mark.parametrize("reloads", [False, True])
@pytest.mark.parametrize("leaves", ["by itself", "unheard of"])
def test_offsets_of_a_consumer_group_live_on_for_their_time_after_its_last_member(leaves: str, reloads: bool) -> None:
    shard = shard_of(offsets_retention_minutes="10", offsets_retention_check_interval_ms=str(MINUTE_MS))
    epoch = shard.join_consumer("g", "m", "t")
    assert shard.commit_offset("g", 7, member="m", generation=epoch) is NONE
    for _ in range(40):
        shard.wait(MINUTE_MS / 2)
        assert not isinstance(shard.beat_as_consumer("g", "m", epoch), ErrorCode)
    if leaves == "by itself":
        shard.beat_as_consumer("g", "m", -1)
    else:
        shard.wait(45_000)
    assert shard.listed() == {"g": ("Empty", "consumer")}
    if reloads:
        shard.reload()
    shard.wait(9 * MINUTE_MS)
    assert shard.offsets("g") == {"t": 7}
    shard.wait(2 * MINUTE_MS)
    assert shard.offsets("g") == {} and shard.listed() == {}


def delete_offset(shard: GroupShard, group_id: str, topic: str) -> ErrorCode:
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    request = OffsetDeleteRequest(
        group_id=group_id, topics=[OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    )
    answer = shard.outcome("offset_delete", request, 0)
    return answer if isinstance(answer, ErrorCode) else ErrorCode(answer.topics[0].partitions[0].error_code)


def commit_in_transaction(
    shard: GroupShard, group_id: str, offset: int, *, member: str = "", generation: int = -1
) -> ErrorCode:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = TxnOffsetCommitRequest(
        group_id=group_id,
        producer_id=7,
        member_id=member,
        generation_id=generation,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    answer = shard.outcome("txn_offset_commit", request, 3)
    return answer if isinstance(answer, ErrorCode) else ErrorCode(answer.topics[0].partitions[0].error_code)


# --- Offsets of classic groups


def test_a_group_that_only_commits_is_an_empty_classic_one() -> None:
    shard = shard_of()
    shard.commit_offset("g", 5)
    for _ in range(2):
        assert shard.listed() == {"g": ("Empty", "classic")}
        assert shard.listed("Stable") == {}
        assert shard.offsets("g") == {"t": 5}
        shard.reload()


def test_a_member_commits_in_its_generation() -> None:
    shard = shard_of()
    member = shard.stable_classic("g", "t")
    assert shard.commit_offset("g", 5, member=member, generation=1) == NONE
    assert shard.commit_offset("g", 6, member=member, generation=2) == ErrorCode.ILLEGAL_GENERATION
    assert shard.commit_offset("g", 6, member="stranger", generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.commit_offset("g", 6) == ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.offsets("g") == {"t": 5}


def test_a_member_commits_in_transactions_in_its_generation() -> None:
    shard = shard_of()
    member = shard.stable_classic("g", "t")
    assert commit_in_transaction(shard, "g", 5, member=member, generation=1) == NONE
    assert commit_in_transaction(shard, "g", 6, member=member, generation=2) == ErrorCode.ILLEGAL_GENERATION
    assert commit_in_transaction(shard, "g", 6, member="stranger", generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
    shard.end_transaction(7, 0, committed=True)
    assert shard.offsets("g") == {"t": 5}


def test_a_member_that_commits_is_alive() -> None:
    shard = shard_of()
    member = shard.stable_classic("g", "t")
    for offset in range(5):
        shard.wait(9_000)
        assert shard.commit_offset("g", offset, member=member, generation=1) == NONE
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)
    assert shard.ask("heartbeat", beat, 3).value.error_code == NONE
    shard.wait(10_001)
    assert shard.listed() == {"g": ("Empty", "classic")}


def test_offsets_in_use_do_not_expire_and_the_others_do() -> None:
    shard = shard_of(offsets_retention_minutes="10")
    member = shard.stable_classic("g", "t")
    shard.commit_offset("g", 1, topic="t", member=member, generation=1)
    shard.commit_offset("g", 2, topic="u", member=member, generation=1)
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)
    for _ in range(200):
        shard.wait(9_000)
        assert shard.ask("heartbeat", beat, 3).value.error_code == NONE
    assert shard.offsets("g") == {"t": 1}


def test_an_abandoned_group_keeps_its_offsets_until_they_expire_and_is_then_deleted() -> None:
    shard = shard_of(offsets_retention_minutes="30", offsets_retention_check_interval_ms=str(MINUTE_MS))
    member = shard.stable_classic("g", "t")
    shard.commit_offset("g", 1, member=member, generation=1)
    shard.ask("leave_group", LeaveGroupRequest(group_id="g", member_id=member), 2)
    shard.wait(29 * MINUTE_MS)
    shard.reload()
    assert shard.offsets("g") == {"t": 1} and shard.listed() == {"g": ("Empty", "classic")}
    shard.wait(2 * MINUTE_MS)
    assert shard.offsets("g") == {} and shard.listed() == {}
    shard.reload()
    assert shard.offsets("g") == {} and shard.listed() == {}


def test_offsets_that_members_use_cannot_be_deleted() -> None:
    shard = shard_of()
    member = shard.stable_classic("g", "t")
    for topic in ("t", "u"):
        shard.commit_offset("g", 1, topic=topic, member=member, generation=1)
    assert delete_offset(shard, "g", "t") == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete_offset(shard, "g", "u") == NONE
    assert shard.offsets("g") == {"t": 1}


def test_the_topics_of_members_that_are_not_consumers_are_unknown() -> None:
    shard = shard_of()
    shard.commit_offset("g", 1)
    shard.stable_classic("g", protocol_type="connect")
    assert delete_offset(shard, "g", "t") == ErrorCode.NON_EMPTY_GROUP


# --- Offsets of consumer groups


def test_a_member_of_a_consumer_group_commits_and_reads_in_its_epoch() -> None:
    shard = shard_of()
    epoch = shard.join_consumer("g", "m", "t")
    assert shard.commit_offset("g", 5, member="m", generation=epoch) == NONE
    assert shard.commit_offset("g", 6, member="m", generation=epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert shard.commit_offset("g", 6, member="m", generation=epoch, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert shard.commit_offset("g", 6, member="stranger", generation=epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.commit_offset("g", 6) == ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.offsets("g", member="m", epoch=epoch) == {"t": 5}
    assert shard.offsets("g", member="m", epoch=epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert shard.offsets("g") == {"t": 5}


def test_a_member_that_does_not_know_its_newest_epoch_commits_what_it_still_owns() -> None:
    shard = shard_of()
    epoch = shard.join_consumer("g", "a", "t")
    shard.join_consumer("g", "b", "u")
    shard.wait(1_001)
    answer = shard.beat_as_consumer("g", "a", epoch)
    assert not isinstance(answer, ErrorCode) and answer.member_epoch > epoch, "it gets an answer that it never reads"
    assert shard.commit_offset("g", 7, topic="t", member="a", generation=epoch) == NONE
    assert shard.commit_offset("g", 7, topic="u", member="a", generation=epoch) == ErrorCode.STALE_MEMBER_EPOCH


def test_a_producer_commits_for_a_member_of_a_consumer_group() -> None:
    shard = shard_of()
    epoch = shard.join_consumer("g", "m", "t")
    assert commit_in_transaction(shard, "g", 5, member="m", generation=epoch) == NONE
    assert commit_in_transaction(shard, "g", 6, member="m", generation=epoch + 1) == ErrorCode.ILLEGAL_GENERATION
    shard.end_transaction(7, 0, committed=True)
    assert shard.offsets("g") == {"t": 5}


def test_offsets_of_a_consumer_group_expire_when_its_members_do_not_read_the_topic() -> None:
    shard = shard_of(offsets_retention_minutes="10")
    epoch = shard.join_consumer("g", "m", "t")
    for topic in ("t", "u"):
        assert shard.commit_offset("g", 1, topic=topic, member="m", generation=epoch) == NONE
    for _ in range(70):
        shard.wait(20_000)
        assert not isinstance(shard.beat_as_consumer("g", "m", epoch), ErrorCode)
    assert shard.offsets("g") == {"t": 1}


def test_a_consumer_group_is_deleted_with_its_last_offset() -> None:
    shard = shard_of(offsets_retention_minutes="10")
    epoch = shard.join_consumer("g", "m", "t")
    shard.commit_offset("g", 1, member="m", generation=epoch)
    shard.beat_as_consumer("g", "m", -1)
    assert shard.listed() == {"g": ("Empty", "consumer")}
    shard.wait(21 * MINUTE_MS)
    for _ in range(2):
        assert shard.listed() == {} and shard.offsets("g") == {}
        shard.reload()


def test_offsets_that_consumers_use_cannot_be_deleted() -> None:
    shard = shard_of()
    epoch = shard.join_consumer("g", "m", "t")
    for topic in ("t", "u"):
        shard.commit_offset("g", 1, topic=topic, member="m", generation=epoch)
    assert delete_offset(shard, "g", "t") == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete_offset(shard, "g", "u") == NONE


# --- Deleting groups


def test_deleting_a_group_deletes_its_offsets() -> None:
    shard = shard_of()
    member = shard.stable_classic("g", "t")
    shard.commit_offset("g", 1, member=member, generation=1)
    shard.commit_offset("h", 2)
    assert shard.delete("g") == ErrorCode.NON_EMPTY_GROUP
    shard.ask("leave_group", LeaveGroupRequest(group_id="g", member_id=member), 2)
    assert shard.delete("g") == NONE
    for _ in range(2):
        assert shard.listed() == {"h": ("Empty", "classic")}
        assert shard.offsets("g") == {} and shard.offsets("h") == {"t": 2}
        shard.reload()


def test_a_deleted_group_does_not_return_at_the_end_of_a_transaction() -> None:
    shard = shard_of()
    commit_in_transaction(shard, "g", 5)
    assert shard.delete("g") == NONE
    shard.end_transaction(7, 0, committed=True)
    assert shard.offsets("g") == {} and shard.listed() == {}


def test_deleting_a_consumer_group_deletes_its_offsets() -> None:
    shard = shard_of()
    epoch = shard.join_consumer("g", "m", "t")
    shard.commit_offset("g", 1, member="m", generation=epoch)
    assert shard.delete("g") == ErrorCode.NON_EMPTY_GROUP
    shard.beat_as_consumer("g", "m", -1)
    assert shard.delete("g") == NONE
    for _ in range(2):
        assert shard.listed() == {} and shard.offsets("g") == {}
        shard.reload()


def test_only_what_exists_can_be_deleted() -> None:
    assert shard_of().delete("g") == ErrorCode.GROUP_ID_NOT_FOUND


# --- Describing groups


@pytest.mark.parametrize(("version", "error"), [(5, NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_group_that_does_not_exist_is_dead(version: int, error: ErrorCode) -> None:
    shard = shard_of()
    caller = Caller("client", "/host", version)
    described = shard.run(lambda now_ms: shard.machine.describe_group("g", caller, now_ms)).value
    assert (described.group_id, described.group_state, described.error_code) == ("g", "Dead", error)  # type: ignore[union-attr]


def test_a_classic_group_is_described_with_its_members() -> None:
    shard = shard_of()
    member = shard.stable_classic("g", "t")
    caller = Caller("client", "/host", 6)
    described = shard.run(lambda now_ms: shard.machine.describe_group("g", caller, now_ms)).value
    assert (described.group_state, described.protocol_data) == ("Stable", "range")  # type: ignore[union-attr]
    (shown,) = described.members  # type: ignore[union-attr]
    assert (shown.member_id, shown.client_host, shown.member_assignment) == (member, "/host", b"mine")


def test_each_protocol_describes_its_own_groups() -> None:
    shard = shard_of()
    shard.stable_classic("a", "t")
    shard.join_consumer("b", "m", "t")
    caller = Caller("client", "/host", 6)
    described = shard.run(lambda now_ms: shard.machine.describe_group("b", caller, now_ms)).value
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND  # type: ignore[union-attr]
    refused = shard.run(lambda now_ms: shard.machine.describe_consumer_group("a", caller, now_ms)).value
    assert isinstance(refused, ApiError) and refused.code == ErrorCode.GROUP_ID_NOT_FOUND
    modern = shard.run(lambda now_ms: shard.machine.describe_consumer_group("b", caller, now_ms)).value
    assert (modern.group_state, [member.member_id for member in modern.members]) == ("Stable", ["m"])  # type: ignore[union-attr]


# --- Records


def test_records_of_groups_of_another_kind_are_unknown_and_so_skipped() -> None:
    record = tombstone(ShareGroupMetadataKey(group_id="g"))
    with pytest.raises(UnknownRecordError):
        GroupMachine.record_types.decode(encode_key(record.key), None)
