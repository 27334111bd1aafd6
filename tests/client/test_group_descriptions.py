"""Descriptions of classic and consumer groups in one form."""

import pytest

from quire.client.admin.group_descriptions import Group, classic_group, consumer_group
from quire.client.offsets import TopicPartition
from quire.protocol.codec import encode
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import consumer_group_describe as new
from quire.protocol.messages import describe_groups as classic
from quire.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from quire.protocol.schema import Message


def written(message: Message, version: int) -> bytes:
    return version.to_bytes(2, "big") + encode(message, version)


def member(client_id: str, *, version: int = 1, metadata: bytes | None = None) -> classic.DescribedGroupMember:
    parts = ConsumerProtocolAssignmentTopicPartition(topic="t", partitions=[2, 0])
    return classic.DescribedGroupMember(
        member_id=f"{client_id}-1",
        client_id=client_id,
        client_host="/10.0.0.1",
        member_metadata=written(ConsumerProtocolSubscription(topics=["u", "t"]), version)
        if metadata is None
        else metadata,
        member_assignment=written(ConsumerProtocolAssignment(assigned_partitions=[parts]), version),
    )


def described(*members: classic.DescribedGroupMember, protocol_type: str = "consumer") -> Group:
    answer = classic.DescribedGroup(
        group_id="g", group_state="Stable", protocol_type=protocol_type, protocol_data="range", members=list(members)
    )
    group = classic_group(answer, 3)
    assert isinstance(group, Group)
    return group


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_metadata_of_classic_members_is_read(version: int) -> None:
    group = described(member("b", version=version), member("a", version=version))
    assert (group.protocol, group.assignor, group.coordinator, group.in_use) == ("classic", "range", 3, True)
    assert [found.client_id for found in group.members] == ["a", "b"]
    assert group.members[0].subscription == ["t", "u"]
    assert group.members[0].assignment == [TopicPartition("t", 0), TopicPartition("t", 2)]
    assert group.members[0].target is None


def test_the_known_part_of_a_newer_version_is_read() -> None:
    newer = (9).to_bytes(2, "big") + encode(ConsumerProtocolSubscription(topics=["t"]), 3) + b"something new"
    assert described(member("a", metadata=newer)).members[0].subscription == ["t"]


@pytest.mark.parametrize("garbage", [b"", b"\0", b"\0\1", b"\0\0\xff\xff\xff\xf0", b"\xff" * 40, bytes(range(256))])
def test_bytes_that_are_no_consumers_say_nothing(garbage: bytes) -> None:
    assert described(member("a", metadata=garbage)).members[0].subscription == []


def test_metadata_of_other_protocol_types_is_not_interpreted() -> None:
    (worker,) = described(member("a"), protocol_type="connect").members
    assert (worker.subscription, worker.assignment) == ([], [])


@pytest.mark.parametrize(
    ("code", "state", "expected"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, "", ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.NONE, "Dead", ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "", ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ],
)
def test_a_group_that_is_unknown_or_dead_does_not_exist(code: ErrorCode, state: str, expected: ErrorCode) -> None:
    found = classic_group(classic.DescribedGroup(group_id="g", error_code=code, group_state=state), 1)
    assert isinstance(found, ApiError) and found.code == expected


def test_a_group_of_the_consumer_protocol_has_epochs_and_targets() -> None:
    def assignment(*partitions: int) -> new.Assignment:
        return new.Assignment(
            topic_partitions=[new.TopicPartitions(topic_id=bytes(16), topic_name="t", partitions=list(partitions))]
        )

    answer = new.DescribedGroup(
        group_id="g",
        group_state="Reconciling",
        group_epoch=5,
        assignment_epoch=4,
        assignor_name="uniform",
        members=[
            new.Member(
                member_id="m",
                client_id="c",
                member_epoch=3,
                subscribed_topic_regex="t.*",
                assignment=assignment(1, 0),
                target_assignment=assignment(0),
            )
        ],
    )
    group = consumer_group(answer, 2)
    assert isinstance(group, Group)
    assert (group.protocol, group.epoch, group.target_epoch, group.in_use) == ("consumer", 5, 4, True)
    (found,) = group.members
    assert (found.epoch, found.pattern) == (3, "t.*")
    assert found.assignment == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert found.target == [TopicPartition("t", 0)]


def test_an_empty_group_is_not_in_use() -> None:
    group = consumer_group(new.DescribedGroup(group_id="g", group_state="Empty"), 1)
    assert isinstance(group, Group) and not group.in_use
