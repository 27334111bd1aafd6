"""OffsetCommit and TxnOffsetCommit: who may commit, and what is written."""

from quire.coordinators.runtime.record import RecordTypes, StateRecord
from quire.coordinators.runtime.result import WrittenBy
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.group_records import KEY_TYPES, VALUE_TYPES, OffsetCommitKey, OffsetCommitValue
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tests.coordinators.group.offsets.offsets_shard import OffsetsShard, ok, topic_id

A, B = ("a", 0), ("b", 1)
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
TOO_LARGE = ErrorCode.OFFSET_METADATA_TOO_LARGE


def shard_of(**settings: str) -> OffsetsShard:
    return OffsetsShard({"a": 1, "b": 2}, {name.replace("_", "."): value for name, value in settings.items()})


def written(shard: OffsetsShard) -> list[StateRecord]:
    return [RecordTypes(KEY_TYPES, VALUE_TYPES).decode(entry.key, entry.value) for entry in shard.log]


def test_a_commit_is_read_back_with_its_leader_epoch_and_metadata() -> None:
    shard = shard_of()
    assert shard.commit_offsets("g", {A: 5, B: 7}, metadata="here", leader_epoch=3) == ok(A, B)
    read = shard.partition("g", *B)
    assert (read.committed_offset, read.committed_leader_epoch, read.metadata, read.error_code) == (7, 3, "here", 0)


def test_the_later_commit_counts_even_if_its_offset_is_smaller() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    shard.commit_offsets("g", {A: 2})
    assert shard.offset("g", *A) == 2


def test_a_commit_is_written_as_apache_kafka_4_3_writes_it() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5}, metadata="m", leader_epoch=3)
    assert written(shard) == [
        StateRecord(
            OffsetCommitKey(group="g", topic="a", partition=0),
            OffsetCommitValue(
                offset=5, leader_epoch=3, metadata="m", commit_timestamp=shard.clock.now_ms(), topic_id=topic_id("a")
            ),
            version=4,
        )
    ]


def test_an_end_of_life_set_by_an_old_client_is_written_in_the_version_that_can_say_it() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5}, retention_ms=1000, version=2)
    (record,) = written(shard)
    now_ms = shard.clock.now_ms()
    value = OffsetCommitValue(offset=5, metadata="", commit_timestamp=now_ms, expire_timestamp=now_ms + 1000)
    assert record == StateRecord(OffsetCommitKey(group="g", topic="a", partition=0), value, version=1)


def test_an_end_of_life_beyond_all_time_is_the_end_of_time() -> None:
    shard = shard_of()
    assert shard.commit_offsets("g", {A: 5}, retention_ms=2**63 - 1, version=2) == ok(A)
    assert shard.offset("g", *A) == 5


def test_no_metadata_is_empty_metadata() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5}, metadata=None)
    assert shard.partition("g", *A).metadata == ""


def test_metadata_that_is_too_large_is_an_error_of_its_partition_alone() -> None:
    shard = shard_of(offset_metadata_max_bytes="4")
    large = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="12345")
    small = OffsetCommitRequestPartition(partition_index=1, committed_offset=2, committed_metadata="1234")
    request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="b", partitions=[large, small])])
    answer = shard.commit_request(request).value
    assert isinstance(answer, OffsetCommitResponse)
    assert [each.error_code for each in answer.topics[0].partitions] == [TOO_LARGE, ErrorCode.NONE]
    assert shard.all_offsets("g") == {("b", 1): 2}


def test_topics_and_partitions_that_do_not_exist_are_refused_one_by_one() -> None:
    shard = shard_of()
    assert shard.commit_offsets("g", {("x", 0): 1, ("a", 1): 1, A: 1}) == ok(A) | {("x", 0): UNKNOWN, ("a", 1): UNKNOWN}
    assert shard.all_offsets("g") == {A: 1}


def test_commits_only_to_missing_partitions_neither_consult_nor_create_the_group() -> None:
    shard = shard_of()
    assert shard.commit_offsets("g", {("x", 0): 1}, member="m", generation=3) == {("x", 0): UNKNOWN}
    assert not shard.machine.groups


def test_topics_have_ids_from_version_10_on() -> None:
    shard = shard_of()
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=9, committed_metadata="")
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(topic_id=topic_id("a"), partitions=[partition]),
            OffsetCommitRequestTopic(topic_id=topic_id("never"), partitions=[partition]),
        ],
    )
    answer = shard.commit_request(request, version=10).value
    assert isinstance(answer, OffsetCommitResponse)
    assert [(each.topic_id, each.partitions[0].error_code) for each in answer.topics] == [
        (topic_id("a"), ErrorCode.NONE),
        (topic_id("never"), ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert shard.offset("g", *A) == 9


def test_a_client_that_is_no_member_creates_a_group_by_committing() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 1})
    assert list(shard.machine.groups) == ["g"]
    shard.reload()
    assert list(shard.machine.groups) == ["g"]


def test_a_member_of_a_missing_group_gets_the_best_error_of_its_version() -> None:
    shard = shard_of()
    old = shard.commit_offsets("g", {A: 1}, member="m", generation=3, version=8)
    new = shard.commit_offsets("g", {A: 1}, member="m", generation=3, version=9)
    assert (old, new) == (ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND)
    assert not shard.log


def test_the_group_decides_who_may_commit() -> None:
    shard = shard_of()
    shard.group("g").join("m", 3)
    assert shard.commit_offsets("g", {A: 1}, member="m", generation=3, version=7) == ok(A)
    assert shard.commit_offsets("g", {A: 2}, member="n", generation=3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.offset("g", *A) == 1
    assert shard.group("g").asked == [("m", None, 3, False, 7), ("n", None, 3, False, 9)]


def test_a_member_with_an_older_epoch_may_commit_what_it_has_owned_since() -> None:
    shard = shard_of()
    group = shard.group("g")
    group.join("m", 5)
    group.owned = {(topic_id("a"), 0): 3, (topic_id("b"), 1): 5}
    assert shard.commit_offsets("g", {A: 1}, member="m", generation=4) == ok(A)
    assert shard.commit_offsets("g", {A: 2, B: 2}, member="m", generation=4) == ErrorCode.STALE_MEMBER_EPOCH
    assert shard.all_offsets("g") == {A: 1}, "a request that is refused has changed nothing"


def test_the_answer_waits_until_the_commit_cannot_be_lost() -> None:
    shard = shard_of()
    shard.holding = True
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name="a",
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")],
            )
        ],
    )
    answer = shard.commit_request(request)
    assert not answer.done
    shard.commit()
    assert isinstance(answer.value, OffsetCommitResponse)


# --- In transactions


def test_a_commit_in_a_transaction_is_part_of_it() -> None:
    shard = shard_of()
    assert shard.commit_in_transaction("g", {A: 5}, producer_id=8, producer_epoch=2) == ok(A)
    assert [entry.written_by for entry in shard.log] == [WrittenBy(8, 2)]
    (record,) = written(shard)
    assert record.version == 4


def test_errors_in_a_transaction_are_as_without_one() -> None:
    shard = shard_of(offset_metadata_max_bytes="4")
    answer = shard.commit_in_transaction("g", {A: 5, ("x", 0): 1}, producer_id=8, metadata="12345")
    assert answer == {A: TOO_LARGE, ("x", 0): UNKNOWN}
    assert not shard.log


def test_a_transaction_that_claims_a_member_is_checked() -> None:
    shard = shard_of()
    assert (
        shard.commit_in_transaction("g", {A: 1}, producer_id=8, member="m", generation=1)
        == ErrorCode.ILLEGAL_GENERATION
    )
    shard.group("g").join("m", 1)
    assert shard.commit_in_transaction("g", {A: 1}, producer_id=8, member="m", generation=1) == ok(A)
    assert shard.group("g").asked == [("m", None, 1, True, 5)]


def test_producers_get_the_same_error_for_an_old_epoch_as_for_an_old_generation() -> None:
    shard = shard_of()
    shard.group("g").join("m", 5)
    refused = shard.commit_in_transaction("g", {A: 1}, producer_id=8, member="m", generation=4)
    assert refused == ErrorCode.ILLEGAL_GENERATION
    shard.group("g").owned = {(topic_id("a"), 0): 4}
    assert shard.commit_in_transaction("g", {A: 1}, producer_id=8, member="m", generation=4) == ok(A)
    refused = shard.commit_in_transaction("g", {B: 1}, producer_id=8, member="m", generation=4)
    assert refused == ErrorCode.ILLEGAL_GENERATION


def test_a_transaction_needs_a_group() -> None:
    assert shard_of().commit_in_transaction("", {A: 1}, producer_id=8) == ErrorCode.INVALID_GROUP_ID
