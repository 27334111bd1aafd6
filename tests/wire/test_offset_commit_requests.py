"""OffsetCommit, OffsetFetch and OffsetDelete, sent without a client."""

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from quire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from quire.testing import WireConnection
from tests.wire.clients import WAIT_S, eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw import topic_metadata
from tests.wire.raw_groups import join, member_id_for, stable_alone, state_of, subscription
from tests.wire.raw_offsets import (
    COMMIT_NEWEST,
    COMMIT_OLDEST,
    FETCH_NEWEST,
    FETCH_OLDEST,
    MANY_GROUPS_FROM,
    TOPIC_IDS_FROM,
    commit,
    committed,
    delete_offsets,
    fetch_group,
    fetch_old,
)

LONGEST_METADATA = 4096
NOWHERE = bytes(15) + b"\1"


@pytest.mark.parametrize("version", range(COMMIT_OLDEST, COMMIT_NEWEST + 1))
def test_every_version_commits(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, version: int
) -> None:
    topic, group = make_topic(), new_group()
    assert commit(connection, group, topic, 7, metadata="where I was", version=version) == ErrorCode.NONE
    found = committed(connection, group, topic)
    assert (found.committed_offset, found.metadata, found.committed_leader_epoch) == (7, "where I was", -1)


def test_more_than_can_be_kept_at_once_is_refused(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    """The error is that of a coordinator that could not write, not one about the size of a message."""
    count = 300
    topic, group = make_topic(count), new_group()
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=1, committed_metadata="m" * LONGEST_METADATA
        )
        for index in range(count)
    ]
    request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)])
    (answered,) = connection.call(request, COMMIT_NEWEST - 1, OffsetCommitResponse).topics
    assert {each.error_code for each in answered.partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert committed(connection, group, topic).committed_offset == -1


@pytest.mark.parametrize("version", range(FETCH_OLDEST, FETCH_NEWEST + 1))
def test_every_version_fetches_what_was_committed(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, version: int
) -> None:
    topic, group = make_topic(2), new_group()
    commit(connection, group, topic, 7, metadata="where I was", leader_epoch=0)
    found = committed(connection, group, topic, version=version)
    assert (found.error_code, found.committed_offset, found.metadata) == (ErrorCode.NONE, 7, "where I was")
    if version >= 5:
        assert found.committed_leader_epoch == 0
    missing = committed(connection, group, topic, 1, version=version)
    assert (missing.error_code, missing.committed_offset, missing.metadata) == (ErrorCode.NONE, -1, "")


@pytest.mark.parametrize("version", range(2, FETCH_NEWEST + 1))
def test_all_offsets_of_a_group_are_fetched_by_naming_no_topics(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, version: int
) -> None:
    first, second, group = make_topic(2), make_topic(), new_group()
    for topic, partition in ((first, 0), (first, 1), (second, 0)):
        commit(connection, group, topic, 3, partition=partition)
    if version >= MANY_GROUPS_FROM:
        topics = fetch_group(connection, group, None, version=version).topics
        ids = {topic_metadata(connection, name).topic_id: name for name in (first, second)}
        found = {ids.get(each.topic_id, each.name): {p.partition_index for p in each.partitions} for each in topics}
    else:
        answer = fetch_old(connection, group, None, version=version)
        found = {each.name: {p.partition_index for p in each.partitions} for each in answer.topics}
    assert found == {first: {0, 1}, second: {0}}


def test_a_group_that_never_was_has_no_offsets(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    group = new_group()
    assert committed(connection, group, make_topic()).committed_offset == -1
    assert fetch_group(connection, group, None).topics == []
    assert state_of(connection, group) == "Dead", "asking has not made it"


def test_many_groups_are_fetched_in_one_request(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic = make_topic()
    groups = [new_group() for _ in range(20)]
    for number, group in enumerate(groups[:-1]):
        commit(connection, group, topic, number)
    asked = [
        OffsetFetchRequestGroup(
            group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])] if number % 2 else None
        )
        for number, group in enumerate(groups)
    ]
    answer = connection.call(OffsetFetchRequest(groups=asked), MANY_GROUPS_FROM, OffsetFetchResponse)
    found = {each.group_id: each.topics[0].partitions[0].committed_offset for each in answer.groups}
    assert found == {group: number for number, group in enumerate(groups[:-1])} | {groups[-1]: -1}


def test_unknown_topics_and_partitions_are_refused_one_by_one(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    existing = OffsetCommitRequestPartition(partition_index=0, committed_offset=4)
    beyond = OffsetCommitRequestPartition(partition_index=1, committed_offset=4)
    request = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(name=topic, partitions=[existing, beyond]),
            OffsetCommitRequestTopic(name=f"{topic}-nowhere", partitions=[existing]),
        ],
    )
    answer = connection.call(request, 9, OffsetCommitResponse)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert {(t.name, p.partition_index): p.error_code for t in answer.topics for p in t.partitions} == {
        (topic, 0): ErrorCode.NONE,
        (topic, 1): unknown,
        (f"{topic}-nowhere", 0): unknown,
    }
    assert committed(connection, group, topic).committed_offset == 4
    found = fetch_old(connection, group, {f"{topic}-nowhere": [0], topic: [9]})
    assert [(p.error_code, p.committed_offset) for t in found.topics for p in t.partitions] == [(0, -1), (0, -1)]


@pytest.mark.parametrize("topic_id", [bytes(16), NOWHERE], ids=["no id", "an unknown id"])
def test_unknown_topic_ids_are_refused(connection: WireConnection, new_group: NewName, topic_id: bytes) -> None:
    group = new_group()
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=4)
    named = OffsetCommitRequestTopic(topic_id=topic_id, partitions=[partition])
    answer = connection.call(OffsetCommitRequest(group_id=group, topics=[named]), TOPIC_IDS_FROM, OffsetCommitResponse)
    (refused,) = answer.topics
    assert refused.topic_id == topic_id
    assert [p.error_code for p in refused.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID]
    asked = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])]
    )
    (found,) = connection.call(OffsetFetchRequest(groups=[asked]), TOPIC_IDS_FROM, OffsetFetchResponse).groups
    assert [(p.error_code, p.committed_offset) for p in found.topics[0].partitions] == [
        (ErrorCode.UNKNOWN_TOPIC_ID, -1)
    ]


def test_metadata_is_limited(connection: WireConnection, make_topic: MakeTopic, new_group: NewName) -> None:
    """The limit counts characters, not bytes."""
    topic, group = make_topic(), new_group()
    longest = "ü" * LONGEST_METADATA
    assert commit(connection, group, topic, 1, metadata=longest) == ErrorCode.NONE
    too_long = commit(connection, group, topic, 2, metadata=longest + "x")
    assert too_long == ErrorCode.OFFSET_METADATA_TOO_LARGE
    gigantic = commit(connection, group, topic, 2, metadata="x" * 32_767)
    assert gigantic == ErrorCode.OFFSET_METADATA_TOO_LARGE
    found = committed(connection, group, topic)
    assert (found.committed_offset, found.metadata) == (1, longest)


def test_no_metadata_is_empty_metadata(connection: WireConnection, make_topic: MakeTopic, new_group: NewName) -> None:
    topic, group = make_topic(), new_group()
    commit(connection, group, topic, 1, metadata=None)
    assert committed(connection, group, topic).metadata == ""


def test_any_offset_may_be_committed(connection: WireConnection, make_topic: MakeTopic, new_group: NewName) -> None:
    topic, group = make_topic(), new_group()
    for offset in ((1 << 63) - 1, 0, 3):
        assert commit(connection, group, topic, offset) == ErrorCode.NONE
        assert committed(connection, group, topic).committed_offset == offset, "also an earlier one"


def test_the_leader_epoch_is_kept(connection: WireConnection, make_topic: MakeTopic, new_group: NewName) -> None:
    topic, group = make_topic(), new_group()
    commit(connection, group, topic, 3, leader_epoch=17)
    assert committed(connection, group, topic).committed_leader_epoch == 17


def test_a_commit_about_nothing_is_answered(connection: WireConnection, new_group: NewName) -> None:
    request = OffsetCommitRequest(group_id=new_group(), topics=[])
    for version in range(COMMIT_OLDEST, COMMIT_NEWEST + 1):
        assert connection.call(request, version, OffsetCommitResponse).topics == []


def test_a_group_that_has_members_takes_commits_of_its_members_alone(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    joined = stable_alone(connection, group)
    mine: dict[str, Any] = {"member_id": joined.member_id, "generation_id": 1}
    assert commit(connection, group, topic, 1, **mine) == ErrorCode.NONE
    unknown, old = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION
    assert commit(connection, group, topic, 2) == unknown
    assert commit(connection, group, topic, 2, member_id="forged", generation_id=1) == unknown
    for generation_id in (-1, 0, 2):
        assert commit(connection, group, topic, 2, member_id=joined.member_id, generation_id=generation_id) == old
    assert committed(connection, group, topic).committed_offset == 1


def test_a_group_without_members_accepts_commits_without_a_generation(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    assert commit(connection, group, topic, 1) == ErrorCode.NONE
    assert commit(connection, group, topic, 2, member_id="forged") == ErrorCode.NONE
    refused = commit(connection, group, topic, 3, member_id="forged", generation_id=1)
    assert refused == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(connection, group, topic).committed_offset == 2


def test_a_generation_of_a_group_that_never_was_is_refused(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    forged: dict[str, Any] = {"member_id": "forged", "generation_id": 1}
    assert commit(connection, group, topic, version=9, **forged) == ErrorCode.GROUP_ID_NOT_FOUND
    assert commit(connection, group, topic, version=8, **forged) == ErrorCode.ILLEGAL_GENERATION


def test_commits_between_join_and_sync_are_refused(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    member_id = member_id_for(connection, group)
    join(connection, group, member_id=member_id)
    refused = commit(connection, group, topic, member_id=member_id, generation_id=1)
    assert refused == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_that_was_replaced_cannot_commit(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    first = stable_alone(connection, group, instance="named")
    replaced: dict[str, Any] = {"member_id": first.member_id, "generation_id": 1, "instance": "named"}
    assert commit(connection, group, topic, **replaced) == ErrorCode.NONE
    join(connection, group, instance="named")
    assert commit(connection, group, topic, **replaced) == ErrorCode.FENCED_INSTANCE_ID


def test_offsets_are_deleted_one_by_one(connection: WireConnection, make_topic: MakeTopic, new_group: NewName) -> None:
    topic, group = make_topic(2), new_group()
    commit(connection, group, topic, 1)
    commit(connection, group, topic, 2, partition=1)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete_offsets(connection, group, {topic: [0, 9], f"{topic}-nowhere": [0]}) == (
        ErrorCode.NONE,
        {(topic, 0): ErrorCode.NONE, (topic, 9): missing, (f"{topic}-nowhere", 0): missing},
    )
    assert committed(connection, group, topic).committed_offset == -1
    assert committed(connection, group, topic, 1).committed_offset == 2
    assert delete_offsets(connection, group, {topic: [0]}) == (0, {(topic, 0): ErrorCode.NONE}), "again does no harm"


def test_offsets_of_unknown_groups_cannot_be_deleted(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic = make_topic()
    assert delete_offsets(connection, new_group(), {topic: [0]}) == (ErrorCode.GROUP_ID_NOT_FOUND, {})
    assert delete_offsets(connection, "", {topic: [0]}) == (ErrorCode.INVALID_GROUP_ID, {})


def test_offsets_of_topics_that_are_subscribed_to_cannot_be_deleted(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    subscribed, other, group = make_topic(), make_topic(), new_group()
    joined = stable_alone(connection, group, protocols={"range": subscription(subscribed)})
    for topic in (subscribed, other):
        done = commit(connection, group, topic, member_id=joined.member_id, generation_id=joined.generation_id)
        assert done == ErrorCode.NONE
    assert delete_offsets(connection, group, {subscribed: [0], other: [0]}) == (
        ErrorCode.NONE,
        {(subscribed, 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, (other, 0): ErrorCode.NONE},
    )
    assert committed(connection, group, subscribed).committed_offset == 5


def test_offsets_of_members_that_are_no_consumers_cannot_be_deleted(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    joined = stable_alone(connection, group, protocol_type="connect")
    commit(connection, group, topic, member_id=joined.member_id, generation_id=1)
    assert delete_offsets(connection, group, {topic: [0]}) == (ErrorCode.NON_EMPTY_GROUP, {})


def test_the_offsets_of_a_deleted_topic_go_with_it(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, admin: AdminClient
) -> None:
    kept, deleted, group = make_topic(), make_topic(), new_group()
    commit(connection, group, kept)
    commit(connection, group, deleted)
    admin.delete_topics([deleted])[deleted].result(WAIT_S)
    eventually(lambda: [each.name for each in fetch_group(connection, group, None).topics] == [kept])
