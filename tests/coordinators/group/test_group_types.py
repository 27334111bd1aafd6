"""A group id belongs to one group of one type: how an empty group takes the other protocol, and when it does not."""

from typing import Any

import pytest

from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.heartbeat import HeartbeatRequest
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from quire.protocol.messages.leave_group import LeaveGroupRequest
from quire.protocol.messages.sync_group import SyncGroupRequest
from tests.coordinators.group.group_shard import GroupShard, subscription
from tests.coordinators.group.two_topics import shard_of

NONE = ErrorCode.NONE


def test_groups_of_both_protocols_are_listed_each_as_what_it_is() -> None:
    shard = shard_of()
    shard.stable_classic("a", "t")
    shard.join_consumer("b", "m", "t")
    shard.commit_offset("c", 1)
    listed = {"a": ("Stable", "classic"), "b": ("Stable", "consumer"), "c": ("Empty", "classic")}
    assert shard.listed() == listed
    shard.reload()
    assert shard.listed() == listed


def test_a_consumer_group_takes_the_place_and_the_offsets_of_an_empty_classic_one() -> None:
    shard = shard_of()
    member = shard.stable_classic("g", "t")
    shard.commit_offset("g", 5, member=member, generation=1)
    assert shard.beat_as_consumer("g", "m", 0, "t") == ErrorCode.GROUP_ID_NOT_FOUND
    shard.ask("leave_group", LeaveGroupRequest(group_id="g", member_id=member), 2)
    shard.join_consumer("g", "m", "t")
    for _ in range(2):
        assert shard.listed() == {"g": ("Stable", "consumer")}
        assert shard.offsets("g") == {"t": 5}
        shard.reload()


def test_a_consumer_group_takes_the_place_of_one_that_only_kept_offsets() -> None:
    shard = shard_of()
    shard.commit_offset("g", 5)
    shard.join_consumer("g", "m", "t")
    for _ in range(2):
        assert shard.listed() == {"g": ("Stable", "consumer")}
        assert shard.offsets("g") == {"t": 5}
        shard.reload()


def test_a_classic_group_takes_the_place_and_the_offsets_of_an_empty_consumer_group() -> None:
    shard = shard_of()
    epoch = shard.join_consumer("g", "m", "t")
    shard.commit_offset("g", 5, member="m", generation=epoch)
    shard.beat_as_consumer("g", "m", -1)
    shard.stable_classic("g", "t")
    for _ in range(2):
        assert shard.listed() == {"g": ("Stable", "classic")}
        assert shard.offsets("g") == {"t": 5}
        shard.reload()


def test_an_empty_consumer_group_is_what_it_was_when_a_classic_member_is_refused() -> None:
    shard = shard_of()
    shard.join_consumer("g", "m", "t")
    shard.beat_as_consumer("g", "m", -1)
    before = len(shard.log)
    refused = shard.ask("join_group", JoinGroupRequest(group_id="g", session_timeout_ms=1), 3).value
    assert isinstance(refused, ApiError) and refused.code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert shard.listed() == {"g": ("Empty", "consumer")} and len(shard.log) == before


# --- An empty consumer group and classic clients that are only given a member id


def emptied_consumer_group() -> GroupShard:
    shard = shard_of()
    epoch = shard.join_consumer("g", "m", "t")
    shard.commit_offset("g", 5, member="m", generation=epoch)
    shard.beat_as_consumer("g", "m", -1)
    return shard


def join_with_id(shard: GroupShard, member_id: str = "") -> Pending[Any]:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=subscription("t"))]
    request = JoinGroupRequest(
        group_id="g",
        member_id=member_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=protocols,
    )
    return shard.ask("join_group", request, 9)


def given_id(shard: GroupShard) -> str:
    given = join_with_id(shard).value
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    return str(given.member_id)


def test_a_classic_client_that_was_only_given_an_id_does_not_change_the_type_of_a_group() -> None:
    shard = emptied_consumer_group()
    before = len(shard.log)
    given_id(shard)
    assert shard.listed() == {"g": ("Empty", "consumer")}
    shard.wait(60_000)
    assert shard.listed() == {"g": ("Empty", "consumer")} and len(shard.log) == before
    assert shard.join_consumer("g", "m", "t") > 0
    assert shard.offsets("g") == {"t": 5}


def test_the_group_becomes_classic_when_a_client_joins_with_the_id_that_it_was_given() -> None:
    shard = emptied_consumer_group()
    first, second = given_id(shard), given_id(shard)
    joining = join_with_id(shard, first)
    assert shard.listed() == {"g": ("PreparingRebalance", "classic")}
    assert not joining.done  # the first rebalance waits for the other client
    joined = [joining, join_with_id(shard, second)]
    shard.wait(0)
    assert [each.value.error_code for each in joined] == [NONE, NONE]
    assert {each.value.generation_id for each in joined} == {1}
    shard.reload()
    assert shard.offsets("g") == {"t": 5}
    assert shard.listed() == {"g": ("Empty", "classic")}


def test_a_given_id_ends_with_its_session_and_when_its_client_leaves() -> None:
    shard = emptied_consumer_group()
    late, leaving = given_id(shard), given_id(shard)
    assert shard.ask("leave_group", LeaveGroupRequest(group_id="g", member_id=leaving), 2).value.error_code == NONE
    assert join_with_id(shard, leaving).value.code == ErrorCode.UNKNOWN_MEMBER_ID
    shard.wait(10_001)
    assert join_with_id(shard, late).value.code == ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.listed() == {"g": ("Empty", "consumer")}


@pytest.mark.parametrize("api", ["sync_group", "heartbeat", "leave_group"])
def test_a_member_of_the_classic_group_is_not_a_member_of_the_consumer_group(api: str) -> None:
    shard = shard_of()
    shard.join_consumer("g", "m", "t")
    requests = {
        "sync_group": SyncGroupRequest(group_id="g", generation_id=1, member_id="old"),
        "heartbeat": HeartbeatRequest(group_id="g", generation_id=1, member_id="old"),
        "leave_group": LeaveGroupRequest(group_id="g", member_id="old"),
    }
    answer = shard.outcome(api, requests[api], 2)
    assert (answer if isinstance(answer, ErrorCode) else answer.error_code) == ErrorCode.UNKNOWN_MEMBER_ID
