"""Offsets of groups of the newer protocol (KIP-848), sent without a client: an epoch instead of a generation."""

from typing import Any

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from quire.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from quire.testing import WireConnection
from tests.wire.clients import eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw_consumer_groups import RawConsumer
from tests.wire.raw_offsets import commit, committed, delete_offsets, fetch_group
from tests.wire.raw_transactions import Txn


def test_a_member_of_the_newer_protocol_commits_with_its_epoch(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    one = RawConsumer(connection, group, topic)
    one.join()
    member: dict[str, Any] = {"member_id": one.member_id}
    for version in (9, 10):
        good = commit(connection, group, topic, 3, version=version, generation_id=one.epoch, **member)
        assert good == ErrorCode.NONE
    stale = commit(connection, group, topic, 4, generation_id=one.epoch + 1, **member)
    assert stale == ErrorCode.STALE_MEMBER_EPOCH
    forged = commit(connection, group, topic, 4, generation_id=one.epoch, member_id="forged")
    assert forged == ErrorCode.UNKNOWN_MEMBER_ID
    older = commit(connection, group, topic, 4, generation_id=one.epoch, version=8, **member)
    assert older == ErrorCode.UNSUPPORTED_VERSION
    assert commit(connection, group, topic, 4) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(connection, group, topic).committed_offset == 3


def test_a_member_of_the_newer_protocol_fetches_with_its_epoch(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    one = RawConsumer(connection, group, topic)
    one.join()
    wanted = {topic: [0]}
    for version in (9, 10):
        good = fetch_group(connection, group, wanted, version=version, member_id=one.member_id, member_epoch=one.epoch)
        assert good.error_code == ErrorCode.NONE
    stale = fetch_group(connection, group, wanted, member_id=one.member_id, member_epoch=one.epoch + 1)
    assert stale.error_code == ErrorCode.STALE_MEMBER_EPOCH
    forged = fetch_group(connection, group, wanted, member_id="forged", member_epoch=one.epoch)
    assert forged.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    anyone = fetch_group(connection, group, wanted)
    assert anyone.error_code == ErrorCode.NONE


def test_a_member_of_the_newer_protocol_commits_in_a_transaction_with_its_epoch(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, new_transactional_id: NewName
) -> None:
    producer = Txn(connection, new_transactional_id()).init()
    topic, group = make_topic(), new_group()
    one = RawConsumer(connection, group, topic)
    one.join()
    mine: dict[str, Any] = {"member_id": one.member_id}
    assert producer.commit_offset(group, topic, 5, generation_id=one.epoch, **mine) == ErrorCode.NONE
    stale = producer.commit_offset(group, topic, 6, generation_id=one.epoch + 1, **mine)
    assert stale == ErrorCode.ILLEGAL_GENERATION
    producer.commit()
    eventually(lambda: committed(connection, group, topic, require_stable=True).committed_offset == 5)


def test_offsets_of_topics_that_are_subscribed_to_cannot_be_deleted(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    subscribed, other, group = make_topic(), make_topic(), new_group()
    one = RawConsumer(connection, group, subscribed)
    one.join()
    for topic in (subscribed, other):
        done = commit(connection, group, topic, member_id=one.member_id, generation_id=one.epoch)
        assert done == ErrorCode.NONE
    assert delete_offsets(connection, group, {subscribed: [0], other: [0]}) == (
        ErrorCode.NONE,
        {(subscribed, 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, (other, 0): ErrorCode.NONE},
    )
    assert committed(connection, group, subscribed).committed_offset == 5


def test_a_group_is_listed_with_its_type_and_cannot_be_deleted_while_it_is_used(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    group = new_group()
    one = RawConsumer(connection, group, make_topic())
    one.join()
    for version in range(6):
        answer = connection.call(ListGroupsRequest(), version, ListGroupsResponse)
        found = {each.group_id: each for each in answer.groups}[group]
        assert found.protocol_type == "consumer"
        assert found.group_state == ("Stable" if version >= 4 else "")
        assert found.group_type == ("consumer" if version >= 5 else "")
    for expected in (ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        answers = connection.call(DeleteGroupsRequest(groups_names=[group]), 2, DeleteGroupsResponse)
        assert [each.error_code for each in answers.results] == [expected]
        if expected == ErrorCode.NON_EMPTY_GROUP:
            one.leave()
