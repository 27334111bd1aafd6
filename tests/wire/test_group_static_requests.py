"""Static members, without a client: which member is fenced, and which returns without a rebalance."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.testing import WireConnection
from tests.wire.clients import eventually
from tests.wire.conftest import NewName
from tests.wire.raw_groups import (
    begin_join,
    begin_join_as_new,
    described,
    heartbeat,
    join,
    leave,
    stable_alone,
    state_of,
    subscription,
    sync,
)

UNCHANGED_IN_STABLE = [5, 8, 9]


def test_a_static_member_joins_without_asking_for_a_member_id(connection: WireConnection, new_group: NewName) -> None:
    group = new_group()
    joined = join(connection, group, instance="static")
    assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 1)
    assert joined.member_id.startswith("static-")
    assert [member.group_instance_id for member in joined.members] == ["static"]


@pytest.mark.parametrize("version", UNCHANGED_IN_STABLE)
def test_a_static_member_that_returns_gets_a_new_id_in_the_old_generation(
    connection: WireConnection, new_group: NewName, version: int
) -> None:
    group = new_group()
    first = stable_alone(connection, group, instance="static", version=version)
    back = join(connection, group, instance="static", version=version)
    assert (back.error_code, back.generation_id) == (ErrorCode.NONE, 1)
    assert back.member_id != first.member_id
    assert state_of(connection, group) == "Stable"
    assert sync(connection, group, back, instance="static").assignment == b"everything"


def test_a_leader_that_rejoins_must_not_assign(connection: WireConnection, new_group: NewName) -> None:
    """From version 9 on it is the leader and gets the members; in earlier versions the response names its predecessor
    as the leader."""
    group = new_group()
    first = stable_alone(connection, group, instance="static")
    assert not first.skip_assignment
    back = join(connection, group, instance="static")
    assert (back.skip_assignment, back.leader) == (True, back.member_id)
    assert [member.member_id for member in back.members] == [back.member_id]
    older = join(connection, group, instance="static", version=8)
    assert (older.leader, older.members) == (back.member_id, [])


def test_a_replaced_member_is_fenced_by_every_request(connection: WireConnection, new_group: NewName) -> None:
    group = new_group()
    first = stable_alone(connection, group, instance="static")
    join(connection, group, instance="static")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert heartbeat(connection, group, first.member_id, 1, instance="static") == fenced
    assert sync(connection, group, first, instance="static").error_code == fenced
    assert join(connection, group, instance="static", member_id=first.member_id).error_code == fenced
    left = leave(connection, group, (first.member_id, "static"))
    assert [member.error_code for member in left.members] == [fenced]


def test_a_replaced_member_that_does_not_send_its_instance_id_is_unknown(
    connection: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    first = stable_alone(connection, group, instance="static")
    join(connection, group, instance="static")
    assert heartbeat(connection, group, first.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_is_known_by_its_id_alone(connection: WireConnection, new_group: NewName) -> None:
    group = new_group()
    joined = stable_alone(connection, group, instance="static")
    assert heartbeat(connection, group, joined.member_id, 1) == ErrorCode.NONE


def test_an_unknown_instance_id_is_refused(connection: WireConnection, new_group: NewName) -> None:
    group = new_group()
    joined = stable_alone(connection, group, instance="static")
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(connection, group, joined.member_id, 1, instance="other") == unknown
    assert sync(connection, group, joined, instance="other").error_code == unknown
    left = leave(connection, group, ("", "other"))
    assert [(member.group_instance_id, member.error_code) for member in left.members] == [("other", unknown)]


def test_a_static_member_is_removed_by_its_name_alone(connection: WireConnection, new_group: NewName) -> None:
    group = new_group()
    stable_alone(connection, group, instance="static")
    left = leave(connection, group, ("", "static"))
    assert [(member.member_id, member.group_instance_id, member.error_code) for member in left.members] == [
        ("", "static", ErrorCode.NONE)
    ]
    assert state_of(connection, group) == "Empty"


def test_a_static_member_that_returns_with_another_subscription_begins_no_rebalance(
    connection: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    stable_alone(connection, group, instance="static")
    changed = join(connection, group, instance="static", protocols={"range": subscription("something else")})
    assert (changed.error_code, changed.generation_id) == (ErrorCode.NONE, 1)


def test_a_static_member_that_returns_and_changes_the_choice_of_protocol_begins_a_rebalance(
    connection: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    offered = {"range": subscription("anything"), "other": subscription("anything")}
    stable_alone(connection, group, instance="static", protocols=offered)
    del offered["range"]
    changed = join(connection, group, instance="static", protocols=offered)
    assert (changed.error_code, changed.generation_id, changed.protocol_name) == (ErrorCode.NONE, 2, "other")
    assert not changed.skip_assignment


def test_a_join_that_waits_ends_fenced_when_another_of_its_name_comes(
    bootstrap: str, connection: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    with WireConnection(bootstrap) as first, WireConnection(bootstrap) as second:
        stable_alone(connection, group)
        replaced = begin_join(first, group, instance="static")
        eventually(lambda: len(described(connection, group).members) == 2)
        begin_join(second, group, instance="static")
        assert replaced.join().error_code == ErrorCode.FENCED_INSTANCE_ID


def test_static_and_dynamic_members_live_in_one_group(
    bootstrap: str, connection: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    static = stable_alone(connection, group, instance="static")
    with WireConnection(bootstrap) as other:
        waiting = begin_join_as_new(other, group)
        again = join(connection, group, member_id=static.member_id, instance="static")
        assert waiting.join().generation_id == again.generation_id == 2
    assert {m.group_instance_id for m in described(connection, group).members} == {"static", None}
