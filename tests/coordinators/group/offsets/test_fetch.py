"""OffsetFetch for one group: present and missing offsets, and who may fetch them."""

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from tests.coordinators.group.offsets.offsets_shard import OffsetsShard, topic_id, topics

A, B = ("a", 0), ("b", 1)


def shard_of() -> OffsetsShard:
    return OffsetsShard({"a": 1, "b": 2})


def test_a_partition_without_a_committed_offset_has_offset_minus_one_and_no_error() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    for group_id, partition in (("g", ("b", 0)), ("g", ("x", 0)), ("nobody", A)):
        answer = shard.partition(group_id, *partition)
        assert (answer.committed_offset, answer.committed_leader_epoch, answer.metadata) == (-1, -1, "")
        assert answer.error_code == ErrorCode.NONE


def test_without_topics_everything_is_asked_for() -> None:
    shard = shard_of()
    assert shard.all_offsets("g") == {}
    shard.commit_offsets("g", {A: 5, B: 6})
    shard.commit_offsets("other", {A: 1})
    assert shard.all_offsets("g") == {A: 5, B: 6}


def test_no_topics_are_another_thing_than_all_topics() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    answer = shard.fetch_group(OffsetFetchRequestGroup(group_id="g", topics=[]))
    assert isinstance(answer, OffsetFetchResponseGroup) and answer.topics == []


def test_a_fetch_of_all_partitions_reports_unstable_offsets() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5, B: 6})
    shard.commit_in_transaction("g", {B: 7}, producer_id=1)
    answer = shard.fetch_group(OffsetFetchRequestGroup(group_id="g", topics=None), require_stable=True)
    assert isinstance(answer, OffsetFetchResponseGroup)
    first, second = (topic.partitions[0] for topic in answer.topics)
    assert (first.committed_offset, first.error_code) == (5, ErrorCode.NONE)
    assert (second.committed_offset, second.error_code) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


def test_a_member_shows_its_epoch() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    shard.group("g").join("m", 3)
    for epoch, expected in ((3, None), (2, ErrorCode.STALE_MEMBER_EPOCH)):
        request = OffsetFetchRequestGroup(group_id="g", member_id="m", member_epoch=epoch, topics=None)
        answer = shard.fetch_group(request)
        assert answer == expected if expected else isinstance(answer, OffsetFetchResponseGroup)


def test_a_member_of_no_group_finds_no_offsets() -> None:
    request = OffsetFetchRequestGroup(group_id="nobody", member_id="m", member_epoch=3, topics=None)
    answer = shard_of().fetch_group(request)
    assert answer == OffsetFetchResponseGroup(group_id="nobody")


def by_id(*asked: bytes) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(
        group_id="g",
        topics=[OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in asked],
    )


def test_topics_have_ids_from_version_10_on() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    answer = shard.fetch_group(by_id(topic_id("a"), topic_id("never")), version=10)
    assert isinstance(answer, OffsetFetchResponseGroup)
    found, unknown = answer.topics
    assert (found.topic_id, found.partitions[0].committed_offset) == (topic_id("a"), 5)
    assert (unknown.topic_id, unknown.partitions[0].committed_offset) == (topic_id("never"), -1)
    assert unknown.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_everything_by_id_leaves_out_topics_that_have_none() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5, B: 6})
    shard.image = topics({"a": 1})
    answer = shard.fetch_group(OffsetFetchRequestGroup(group_id="g", topics=None), version=10)
    assert isinstance(answer, OffsetFetchResponseGroup)
    assert [(topic.topic_id, topic.partitions[0].committed_offset) for topic in answer.topics] == [(topic_id("a"), 5)]
    assert shard.all_offsets("g") == {A: 5, B: 6}, "by name there is no reason to"


def test_an_offset_of_a_topic_that_was_deleted_is_none_of_the_next_topic_of_that_name() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 5})
    shard.image = topics({"a": 1}, incarnation=1)
    assert shard.offset("g", *A) == -1
    assert shard.all_offsets("g") == {}
    answer = shard.fetch_group(by_id(topic_id("a", 1)), version=10)
    assert isinstance(answer, OffsetFetchResponseGroup)
    assert answer.topics[0].partitions[0].committed_offset == -1
