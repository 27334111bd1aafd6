from quire.client.admin.group_descriptions import Group
from quire.client.admin.group_lag import GroupDetail, GroupPartition, group_details
from quire.client.group_offsets import OffsetAndMetadata
from quire.client.offsets import TopicPartition
from quire.protocol.codec import encode
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
)
from quire.protocol.messages.describe_groups import DescribedGroupMember
from tests.client.model_coordinators import CoordinatedCluster


def reader_of(topic: str, *partitions: int) -> DescribedGroupMember:
    parts = ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=list(partitions))
    assignment = ConsumerProtocolAssignment(assigned_partitions=[parts])
    return DescribedGroupMember(member_id="m-1", client_id="m", member_assignment=b"\0\0" + encode(assignment, 0))


def with_ends(*ends: int) -> CoordinatedCluster:
    model = CoordinatedCluster(nodes=2)
    for partition, end in zip(model.create("t", len(ends)).partitions, ends, strict=True):
        partition.end_offset = end
    return model


def detail(model: CoordinatedCluster, name: str = "g") -> GroupDetail:
    found = model.run(group_details(model.client(), [name]))[name]
    assert isinstance(found, GroupDetail), found
    return found


def test_committed_and_read_offsets_are_shown_with_the_end_of_each_partition() -> None:
    model = with_ends(10, 20, 30)
    model.group("g", 2, state="Stable", offsets={TopicPartition("t", 0): 4}, members=[reader_of("t", 1)])
    found = detail(model)
    shown = [
        (part.topic_partition.partition, part.lag, part.member and part.member.client_id) for part in found.partitions
    ]
    assert shown == [(0, 6, None), (1, None, "m")]
    assert [part.end_offset for part in found.partitions] == [10, 20]
    assert found.lag == 6


def test_deleted_topics_and_leaderless_partitions_have_no_end_and_do_not_delay_the_result() -> None:
    model = with_ends(10, 20)
    model.topics["t"].partitions[1].leader = -1
    committed = {TopicPartition("t", 0): 1, TopicPartition("t", 1): 2, TopicPartition("gone", 0): 3}
    model.group("g", offsets=committed)
    found = detail(model)
    assert [(str(part.topic_partition), part.end_offset) for part in found.partitions] == [
        ("gone-0", None),
        ("t-0", 10),
        ("t-1", None),
    ]
    assert found.lag == 9
    assert model.clock.monotonic_ms() < 1000


def test_reading_beyond_one_end_does_not_offset_the_lag_elsewhere() -> None:
    topic_partitions = [TopicPartition("t", index) for index in range(3)]
    parts = [
        GroupPartition(topic_partitions[0], OffsetAndMetadata(5), 15, None),
        GroupPartition(topic_partitions[1], OffsetAndMetadata(100), 20, None),
        GroupPartition(topic_partitions[2], None, 20, None),
    ]
    assert [part.lag for part in parts] == [10, -80, None]
    assert GroupDetail(Group("g", "classic", "consumer", "Empty", "", 1), parts).lag == 10


def test_partitions_that_are_read_without_a_commit_are_counted_with_the_records_they_hold() -> None:
    model = with_ends(10, 20, 30)
    model.topics["t"].partitions[2].start_offset = 25
    model.group("g", 2, state="Stable", offsets={TopicPartition("t", 0): 4}, members=[reader_of("t", 0, 1, 2)])
    model.group("other", offsets={TopicPartition("t", 1): 20})
    found = model.run(group_details(model.client(), ["g", "other"]))
    g, other = found["g"], found["other"]
    assert isinstance(g, GroupDetail) and isinstance(other, GroupDetail)
    assert (g.lag, g.uncommitted) == (6, (2, 20 + 5))
    assert (other.lag, other.uncommitted) == (0, (0, 0))


def test_every_group_has_its_own_and_one_that_does_not_exist_fails_alone() -> None:
    model = with_ends(10)
    for name, offset in (("near", 9), ("far", 1)):
        model.group(name, 1 if name == "near" else 2, offsets={TopicPartition("t", 0): offset})
    found = model.run(group_details(model.client(), ["near", "none", "far"]))
    near, none, far = found["near"], found["none"], found["far"]
    assert isinstance(near, GroupDetail) and isinstance(far, GroupDetail)
    assert (near.lag, far.lag) == (1, 9)
    assert isinstance(none, ApiError) and none.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_nothing_asked_for_is_nothing_found() -> None:
    model = CoordinatedCluster()
    assert model.run(group_details(model.client(), [])) == {}
