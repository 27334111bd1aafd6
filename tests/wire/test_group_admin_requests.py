"""FindCoordinator, ListGroups, DescribeGroups and DeleteGroups, sent without a client."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from quire.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from quire.testing import WireConnection
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw_groups import RANGE, described, join, leave, member_id_for, stable_alone
from tests.wire.raw_offsets import commit, committed

GROUP, TRANSACTION = 0, 1
MANY_KEYS_FROM = 4
READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 6, 8, 10, 11


@pytest.mark.parametrize(
    ("version", "key_type"),
    [*((version, GROUP) for version in range(7)), *((version, TRANSACTION) for version in range(1, 7))],
)
def test_every_version_finds_the_coordinator(
    bootstrap: str, connection: WireConnection, coordinators: None, version: int, key_type: int
) -> None:
    if version >= MANY_KEYS_FROM:
        keys = ["one", "another", ""]
        request = FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type)
        found = connection.call(request, version, FindCoordinatorResponse).coordinators
        assert [each.key for each in found] == keys
        addresses = {(each.error_code, each.node_id, f"{each.host}:{each.port}") for each in found}
    else:
        request = FindCoordinatorRequest(key="one", key_type=key_type)
        answer = connection.call(request, version, FindCoordinatorResponse)
        addresses = {(answer.error_code, answer.node_id, f"{answer.host}:{answer.port}")}
    assert addresses == {(ErrorCode.NONE, 1, bootstrap)}


@pytest.mark.parametrize("key_type", [-1, 3])
def test_coordinators_of_other_kinds_are_not_known(
    connection: WireConnection, coordinators: None, key_type: int
) -> None:
    many = FindCoordinatorRequest(coordinator_keys=["one", "two"], key_type=key_type)
    found = connection.call(many, 6, FindCoordinatorResponse).coordinators
    assert [(each.key, each.node_id, each.error_code) for each in found] == [
        ("one", -1, ErrorCode.INVALID_REQUEST),
        ("two", -1, ErrorCode.INVALID_REQUEST),
    ]
    one = connection.call(FindCoordinatorRequest(key="one", key_type=key_type), 3, FindCoordinatorResponse)
    assert (one.node_id, one.error_code) == (-1, ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize("key_type", [GROUP, TRANSACTION, 9])
def test_a_search_for_no_coordinators_finds_none(connection: WireConnection, coordinators: None, key_type: int) -> None:
    for version in range(MANY_KEYS_FROM, 7):
        request = FindCoordinatorRequest(key_type=key_type)
        assert connection.call(request, version, FindCoordinatorResponse).coordinators == []


def listed(connection: WireConnection, version: int = 5, **filters: list[str]) -> dict[str, ListedGroup]:
    answer = connection.call(ListGroupsRequest(**filters), version, ListGroupsResponse)
    assert answer.error_code == ErrorCode.NONE
    return {group.group_id: group for group in answer.groups}


@pytest.mark.parametrize("version", range(6))
def test_every_version_lists_groups(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, version: int
) -> None:
    topic = make_topic()
    classic, simple, other = (new_group() for _ in range(3))
    stable_alone(connection, classic)
    commit(connection, simple, topic)
    stable_alone(connection, other, protocol_type="connect")
    found = listed(connection, version)
    expected = {
        classic: ("consumer", "Stable", "classic"),
        simple: ("", "Empty", "classic"),
        other: ("connect", "Stable", "classic"),
    }
    for group, (protocol_type, state, group_type) in expected.items():
        assert found[group].protocol_type == protocol_type
        assert found[group].group_state == (state if version >= 4 else "")
        assert found[group].group_type == (group_type if version >= 5 else "")


@pytest.mark.parametrize(
    ("states", "types", "is_found"),
    [
        ([], [], True),
        (["Stable"], [], True),
        (["stable"], [], True),
        (["Empty", "Stable"], [], True),
        (["Empty"], [], False),
        (["nonsense"], [], False),
        ([], ["classic"], True),
        ([], ["CLASSIC"], True),
        ([], ["consumer", "classic"], True),
        ([], ["consumer"], False),
        ([], ["nonsense"], False),
        (["Stable"], ["classic"], True),
        (["Stable"], ["consumer"], False),
    ],
)
def test_filters_choose_groups(
    connection: WireConnection, new_group: NewName, states: list[str], types: list[str], is_found: bool
) -> None:
    group = new_group()
    stable_alone(connection, group)
    assert (group in listed(connection, states_filter=states, types_filter=types)) == is_found


@pytest.mark.parametrize("version", range(7))
def test_every_version_describes_a_group(connection: WireConnection, new_group: NewName, version: int) -> None:
    group = new_group()
    joined = stable_alone(connection, group, instance="named")
    found = described(connection, group, version)
    assert (found.error_code, found.group_id, found.group_state) == (ErrorCode.NONE, group, "Stable")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
    (member,) = found.members
    assert (member.member_id, member.client_id, member.client_host) == (joined.member_id, "wire", "/127.0.0.1")
    assert member.group_instance_id == ("named" if version >= 4 else None)
    assert (member.member_metadata, member.member_assignment) == (RANGE["range"], b"everything")


def test_a_group_is_described_as_it_changes(connection: WireConnection, new_group: NewName) -> None:
    """Its protocol and its members' metadata are returned only while it is stable."""
    group = new_group()
    member_id = member_id_for(connection, group)
    joined = join(connection, group, member_id=member_id)
    assert joined.generation_id == 1
    completing = described(connection, group)
    assert (completing.group_state, completing.protocol_type, completing.protocol_data) == (
        "CompletingRebalance",
        "consumer",
        "",
    )
    assert [(m.member_id, m.member_metadata, m.member_assignment) for m in completing.members] == [
        (member_id, b"", b"")
    ]
    leave(connection, group, (member_id, None))
    empty = described(connection, group)
    assert (empty.group_state, empty.protocol_type, empty.protocol_data, empty.members) == ("Empty", "consumer", "", [])


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_never_was_is_dead(connection: WireConnection, new_group: NewName, version: int) -> None:
    """From version 6 on it also gets an error."""
    found = described(connection, new_group(), version)
    expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
    assert (found.error_code, found.group_state, found.members) == (expected, "Dead", [])


def test_groups_are_described_in_the_order_asked_for(connection: WireConnection, new_group: NewName) -> None:
    groups = [new_group() for _ in range(3)]
    for group in groups:
        stable_alone(connection, group)
    asked = [groups[2], groups[0], groups[1], groups[0]]
    answer = connection.call(DescribeGroupsRequest(groups=asked), 6, DescribeGroupsResponse)
    assert [found.group_id for found in answer.groups] == asked[:3], "named twice is described once"


def test_the_operations_allowed_on_a_group_are_returned_on_request(
    connection: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    stable_alone(connection, group)
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=True)
    (found,) = connection.call(request, 6, DescribeGroupsResponse).groups
    everything = sum(1 << each for each in (READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS))
    assert found.authorized_operations == everything
    assert described(connection, group).authorized_operations == -0x80000000


@pytest.mark.parametrize("version", range(3))
def test_every_version_deletes_groups_that_are_empty(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, version: int
) -> None:
    topic = make_topic()
    empty, used, unknown = (new_group() for _ in range(3))
    commit(connection, empty, topic)
    stable_alone(connection, used)
    request = DeleteGroupsRequest(groups_names=[empty, used, unknown])
    answer = connection.call(request, version, DeleteGroupsResponse)
    assert {result.group_id: result.error_code for result in answer.results} == {
        empty: ErrorCode.NONE,
        used: ErrorCode.NON_EMPTY_GROUP,
        unknown: ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert committed(connection, empty, topic).committed_offset == -1
    assert described(connection, empty).group_state == "Dead"


def test_a_deleted_group_starts_again_from_nothing(connection: WireConnection, new_group: NewName) -> None:
    group = new_group()
    joined = stable_alone(connection, group)
    leave(connection, group, (joined.member_id, None))
    answer = connection.call(DeleteGroupsRequest(groups_names=[group]), 2, DeleteGroupsResponse)
    assert [result.error_code for result in answer.results] == [ErrorCode.NONE]
    assert stable_alone(connection, group).generation_id == 1
