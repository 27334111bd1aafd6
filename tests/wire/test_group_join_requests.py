"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup, sent without a client: every version, every state, every invalid
claim.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.join_group import JoinGroupResponse
from quire.testing import WireConnection
from tests.wire.clients import eventually
from tests.wire.conftest import NewName
from tests.wire.raw_groups import (
    ASKS_FOR_A_MEMBER_ID_FROM,
    HEARTBEAT_NEWEST,
    JOIN_NEWEST,
    LEAVE_NEWEST,
    RANGE,
    SYNC_NEWEST,
    begin_join,
    begin_join_as_new,
    begin_sync,
    described,
    heartbeat,
    join,
    leave,
    member_id_for,
    stable_alone,
    state_of,
    subscription,
    sync,
)

SECOND = {"range": subscription("anything", "something else")}
LOWEST_SESSION_MS, HIGHEST_SESSION_MS = 100, 1_800_000
SHORT_MS = 2000
"""A session, or time for a rebalance, that ends soon, but not before the next request of a busy machine."""


@pytest.fixture
def other(bootstrap: str) -> Iterator[WireConnection]:
    with WireConnection(bootstrap, client_id="other") as opened:
        yield opened


@pytest.mark.parametrize("version", range(JOIN_NEWEST + 1))
def test_every_version_joins_syncs_heartbeats_and_leaves(
    connection: WireConnection, new_group: NewName, version: int
) -> None:
    group = new_group()
    joined = join(connection, group, version=version)
    if version >= ASKS_FOR_A_MEMBER_ID_FROM:
        assert (joined.error_code, joined.generation_id) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
        joined = join(connection, group, member_id=joined.member_id, version=version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert joined.member_id.startswith("wire-")
    assert (joined.leader, [(m.member_id, m.metadata) for m in joined.members]) == (
        joined.member_id,
        [(joined.member_id, RANGE["range"])],
    )
    assert joined.protocol_type == ("consumer" if version >= 7 else None)

    synced = sync(connection, group, joined, {joined.member_id: b"mine"}, version=min(version, SYNC_NEWEST))
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"mine")
    if version >= SYNC_NEWEST:
        assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")
    beat = min(version, HEARTBEAT_NEWEST)
    assert heartbeat(connection, group, joined.member_id, 1, version=beat) == ErrorCode.NONE
    left = leave(connection, group, (joined.member_id, None), version=min(version, LEAVE_NEWEST))
    assert left.error_code == ErrorCode.NONE
    if version >= 3:
        assert [(m.member_id, m.error_code) for m in left.members] == [(joined.member_id, ErrorCode.NONE)]
    assert state_of(connection, group) == "Empty"


@pytest.mark.parametrize("member_id", ["forged", "wire-00000000-0000-0000-0000-000000000000"])
@pytest.mark.parametrize("existing", [True, False])
def test_a_forged_member_id_is_unknown_to_every_request(
    connection: WireConnection, new_group: NewName, member_id: str, existing: bool
) -> None:
    group = new_group()
    if existing:
        stable_alone(connection, group)
    forged = join(connection, group, member_id=member_id)
    assert (forged.error_code, forged.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, member_id)
    forged.generation_id = 1
    assert sync(connection, group, forged).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(connection, group, member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    left = leave(connection, group, (member_id, None))
    assert (left.error_code, [each.error_code for each in left.members]) == (0, [ErrorCode.UNKNOWN_MEMBER_ID])
    assert leave(connection, group, (member_id, None), version=0).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert state_of(connection, group) == ("Stable" if existing else "Dead")


@pytest.mark.parametrize("generation_id", [-1, 0, 2, 1 << 30])
def test_another_generation_is_refused(connection: WireConnection, new_group: NewName, generation_id: int) -> None:
    group = new_group()
    joined = stable_alone(connection, group)
    assert heartbeat(connection, group, joined.member_id, generation_id) == ErrorCode.ILLEGAL_GENERATION
    joined.generation_id = generation_id
    assert sync(connection, group, joined).error_code == ErrorCode.ILLEGAL_GENERATION
    assert heartbeat(connection, group, joined.member_id, 1) == ErrorCode.NONE


@pytest.mark.parametrize("timeout_ms", [-1, 0, LOWEST_SESSION_MS - 1, HIGHEST_SESSION_MS + 1])
def test_a_session_timeout_out_of_bounds_is_refused(
    connection: WireConnection, new_group: NewName, timeout_ms: int
) -> None:
    group = new_group()
    assert join(connection, group, session_timeout_ms=timeout_ms).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert state_of(connection, group) == "Dead"


def test_a_group_without_a_name_is_refused_by_every_request(connection: WireConnection, new_group: NewName) -> None:
    refused = join(connection, "")
    assert refused.error_code == ErrorCode.INVALID_GROUP_ID
    assert sync(connection, "", refused).error_code == ErrorCode.INVALID_GROUP_ID
    assert heartbeat(connection, "", "anyone", 1) == ErrorCode.INVALID_GROUP_ID
    assert leave(connection, "", ("anyone", None)).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(
    "wrong",
    [{"protocols": {}}, {"protocol_type": ""}],
    ids=["no protocols", "no protocol type"],
)
def test_a_member_that_offers_nothing_is_refused(
    connection: WireConnection, new_group: NewName, wrong: dict[str, Any]
) -> None:
    group = new_group()
    assert join(connection, group, **wrong).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    "wrong",
    [{"protocols": {"sticky": b""}}, {"protocol_type": "connect"}],
    ids=["no protocol in common", "another protocol type"],
)
def test_a_member_that_does_not_fit_the_others_is_refused(
    connection: WireConnection, new_group: NewName, wrong: dict[str, Any]
) -> None:
    group = new_group()
    joined = stable_alone(connection, group)
    assert join(connection, group, **wrong).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert heartbeat(connection, group, joined.member_id, 1) == ErrorCode.NONE


def test_an_empty_group_takes_any_protocol_again(connection: WireConnection, new_group: NewName) -> None:
    group = new_group()
    joined = stable_alone(connection, group)
    leave(connection, group, (joined.member_id, None))
    again = stable_alone(connection, group, protocol_type="connect", protocols={"something": b"else"})
    assert (again.generation_id, again.protocol_type, again.protocol_name) == (3, "connect", "something")


def test_the_protocol_that_most_members_prefer_is_chosen(bootstrap: str, new_group: NewName) -> None:
    group = new_group()
    offers = [{"a": b"", "b": b"", "c": b""}, {"b": b"", "c": b""}, {"c": b"", "b": b"", "a": b""}]
    connections = [WireConnection(bootstrap) for _ in offers]
    first = stable_alone(connections[0], group, protocols=offers[0])
    waiting = [begin_join_as_new(c, group, protocols=o) for c, o in zip(connections[1:], offers[1:], strict=True)]
    eventually(lambda: len(described_with_new_connection(bootstrap, group)) == 3)
    waiting.append(begin_join(connections[0], group, member_id=first.member_id, protocols=offers[0]))
    answers = [each.join() for each in waiting]
    assert {(answer.protocol_name, answer.generation_id) for answer in answers} == {("b", 2)}
    for each in connections:
        each.close()


def described_with_new_connection(bootstrap: str, group: str) -> list[str]:
    with WireConnection(bootstrap) as connection:
        return [member.member_id for member in described(connection, group).members]


def test_only_the_leader_gets_the_list_of_members(
    connection: WireConnection, other: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    leader = stable_alone(connection, group)
    waiting = begin_join_as_new(other, group, protocols=SECOND)
    eventually(lambda: heartbeat(connection, group, leader.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS)
    led = join(connection, group, member_id=leader.member_id)
    followed = waiting.join()
    assert (led.leader, followed.leader) == (leader.member_id, leader.member_id)
    assert {m.member_id: m.metadata for m in led.members} == {
        leader.member_id: RANGE["range"],
        followed.member_id: SECOND["range"],
    }
    assert followed.members == []
    assert (led.generation_id, followed.generation_id) == (2, 2)


def test_members_wait_for_the_leader_to_assign(
    connection: WireConnection, other: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    led, followed = two_joined(connection, other, group)
    waiting = begin_sync(other, group, followed)
    assert state_of(connection, group) == "CompletingRebalance"
    given = {led.member_id: b"one", followed.member_id: b"two", "somebody who is not there": b"three"}
    assert sync(connection, group, led, given).assignment == b"one"
    assert waiting.sync().assignment == b"two"
    assert state_of(connection, group) == "Stable"
    assert sync(other, group, followed).assignment == b"two", "a repeated request gets the same assignment"
    assert sync(other, group, followed, {followed.member_id: b"more"}).assignment == b"two", "and cannot change it"


def test_a_member_that_the_leader_forgot_gets_an_empty_assignment(
    connection: WireConnection, other: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    led, followed = two_joined(connection, other, group)
    sync(connection, group, led, {led.member_id: b"one"})
    synced = sync(other, group, followed)
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"")


def test_heartbeats_are_welcome_before_the_leader_has_assigned(
    connection: WireConnection, other: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    led, followed = two_joined(connection, other, group)
    assert heartbeat(connection, group, led.member_id, 2) == ErrorCode.NONE
    assert heartbeat(other, group, followed.member_id, 2) == ErrorCode.NONE


def test_a_leave_makes_the_others_join_again(
    connection: WireConnection, other: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    led, followed = two_joined(connection, other, group)
    leave(connection, group, (led.member_id, None))
    assert heartbeat(other, group, followed.member_id, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert sync(other, group, followed).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    again = join(other, group, member_id=followed.member_id)
    assert (again.generation_id, again.leader) == (3, followed.member_id)


@pytest.mark.parametrize("version", [4, 8, 9])
def test_a_follower_that_joins_again_unchanged_gets_the_same_response_without_a_rebalance(
    connection: WireConnection, other: WireConnection, new_group: NewName, version: int
) -> None:
    group = new_group()
    led, followed = two_joined(connection, other, group)
    sync(connection, group, led, {led.member_id: b"one", followed.member_id: b"two"})
    again = join(other, group, member_id=followed.member_id, version=version)
    assert (again.error_code, again.generation_id, again.leader) == (ErrorCode.NONE, 2, led.member_id)
    assert state_of(connection, group) == "Stable"


@pytest.mark.parametrize("who", ["the leader", "a follower with something new"])
def test_these_members_begin_a_rebalance_by_joining_again(
    connection: WireConnection, other: WireConnection, new_group: NewName, who: str
) -> None:
    group = new_group()
    led, followed = two_joined(connection, other, group)
    sync(connection, group, led, {})
    if who == "the leader":
        waiting = begin_join(connection, group, member_id=led.member_id)
        eventually(lambda: heartbeat(other, group, followed.member_id, 2) == ErrorCode.REBALANCE_IN_PROGRESS)
        join(other, group, member_id=followed.member_id)
    else:
        waiting = begin_join(other, group, member_id=followed.member_id, protocols=SECOND)
        eventually(lambda: heartbeat(connection, group, led.member_id, 2) == ErrorCode.REBALANCE_IN_PROGRESS)
        join(connection, group, member_id=led.member_id)
    assert waiting.join().generation_id == 3


@pytest.mark.parametrize(
    "wrong",
    [{"protocol_type": "connect"}, {"protocol_name": "sticky"}, {"protocol_type": None}, {"protocol_name": None}],
)
def test_a_sync_must_name_the_protocol_that_was_chosen(
    connection: WireConnection, new_group: NewName, wrong: dict[str, str | None]
) -> None:
    group = new_group()
    joined = join(connection, group, member_id=member_id_for(connection, group))
    assert sync(connection, group, joined, {}, **wrong).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert sync(connection, group, joined, {}).error_code == 0


def test_a_member_whose_session_ends_is_forgotten(connection: WireConnection, new_group: NewName) -> None:
    group = new_group()
    joined = stable_alone(connection, group, session_timeout_ms=SHORT_MS)
    eventually(lambda: state_of(connection, group) == "Empty")
    assert heartbeat(connection, group, joined.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_id_that_is_not_used_in_time_is_forgotten(connection: WireConnection, new_group: NewName) -> None:
    group, clock = new_group(), new_group()
    asked = member_id_for(connection, group, session_timeout_ms=LOWEST_SESSION_MS)
    stable_alone(connection, clock, session_timeout_ms=SHORT_MS)
    eventually(lambda: state_of(connection, clock) == "Empty")
    assert join(connection, group, member_id=asked).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_join_again_in_time_is_left_behind(
    connection: WireConnection, other: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    slow = stable_alone(connection, group, rebalance_timeout_ms=300)
    joined = begin_join_as_new(other, group, rebalance_timeout_ms=300).join()
    assert (joined.generation_id, joined.leader) == (2, joined.member_id)
    assert heartbeat(connection, group, slow.member_id, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_joins_and_never_syncs_is_left_behind(
    connection: WireConnection, other: WireConnection, new_group: NewName
) -> None:
    """Heartbeats do not prevent that: after the rebalance timeout the others rebalance without it."""
    group = new_group()
    led, followed = two_joined(connection, other, group, rebalance_timeout_ms=SHORT_MS)
    sync(connection, group, led, {})
    eventually(lambda: heartbeat(connection, group, led.member_id, 2) == ErrorCode.REBALANCE_IN_PROGRESS)
    assert heartbeat(other, group, followed.member_id, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_leave_together_and_each_gets_an_answer(
    connection: WireConnection, other: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    led, followed = two_joined(connection, other, group)
    left = leave(connection, group, (led.member_id, None), ("forged", None), (followed.member_id, None))
    assert [(member.member_id, member.error_code) for member in left.members] == [
        (led.member_id, ErrorCode.NONE),
        ("forged", ErrorCode.UNKNOWN_MEMBER_ID),
        (followed.member_id, ErrorCode.NONE),
    ]
    assert state_of(connection, group) == "Empty"


def test_a_member_that_was_only_given_an_id_can_leave(connection: WireConnection, new_group: NewName) -> None:
    group = new_group()
    asked = member_id_for(connection, group)
    left = leave(connection, group, (asked, None))
    assert [member.error_code for member in left.members] == [ErrorCode.NONE]
    assert join(connection, group, member_id=asked).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_connection_that_is_cut_does_not_end_a_membership(
    bootstrap: str, connection: WireConnection, new_group: NewName
) -> None:
    group = new_group()
    with WireConnection(bootstrap) as gone:
        joined = stable_alone(gone, group)
    assert heartbeat(connection, group, joined.member_id, 1) == ErrorCode.NONE


def two_joined(
    connection: WireConnection, other: WireConnection, group: str, **more: Any
) -> tuple[JoinGroupResponse, JoinGroupResponse]:
    """A leader on `connection` and a follower on `other`, both in generation 2 and before SyncGroup."""
    leader = stable_alone(connection, group, **more)
    waiting = begin_join_as_new(other, group, **more)
    eventually(lambda: heartbeat(connection, group, leader.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS)
    return join(connection, group, member_id=leader.member_id, **more), waiting.join()
