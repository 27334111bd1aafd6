"""What prevents a group from changing its protocol, and what members of the classic protocol may not do in a consumer
group.
"""

from typing import Any

import pytest

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.consumer import target
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.runtime.machine import Caller
from quire.coordinators.runtime.record import Origin, StateRecord
from quire.protocol.codec import encoder
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from quire.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from quire.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from quire.protocol.messages.heartbeat import HeartbeatRequest
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from quire.protocol.messages.sync_group import SyncGroupRequest
from tests.coordinators.group.consumer.consumer_shard import GROUP, ConsumerShard, beat, join, topic_id

ORDERS = topic_id("orders", -1)


def subscription(*topics: str, version: int = 3, generation: int = -1) -> bytes:
    out = bytearray(version.to_bytes(2))
    message = ConsumerProtocolSubscription(topics=list(topics), generation_id=generation)
    encoder(ConsumerProtocolSubscription, min(version, 3))(message, out)
    return bytes(out)


def assignment(*partitions: int, user_data: bytes | None = None) -> bytes:
    out = bytearray(b"\0\1")
    orders = ConsumerProtocolAssignmentTopicPartition(topic="orders", partitions=list(partitions))
    message = ConsumerProtocolAssignment(assigned_partitions=[orders], user_data=user_data)
    encoder(ConsumerProtocolAssignment, 1)(message, out)
    return bytes(out)


def member(member_id: str, *partitions: int, **more: Any) -> MemberMetadata:
    said = {"subscription": subscription("orders"), "assignment": assignment(*partitions), **more}
    return MemberMetadata(
        member_id=member_id, client_id="c", client_host="/h", rebalance_timeout=30_000, session_timeout=10_000, **said
    )


def classic_shard(*members: MemberMetadata, protocol_type: str = "consumer", **settings: str) -> ConsumerShard:
    """A stable classic group of these members, in generation 7."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    shard = ConsumerShard({"group.consumer.assignment.interval.ms": "0", **given})
    shard.put_topic("orders", 4)
    value = GroupMetadataValue(
        protocol_type=protocol_type, generation=7, protocol="range", leader=members[0].member_id, members=list(members)
    )
    shard.machine.replay(StateRecord(GroupMetadataKey(group=GROUP), value, 3), Origin(0))
    return shard


def refusal(shard: ConsumerShard) -> str:
    """The heartbeat of a consumer of the newer protocol; the group keeps its protocol."""
    answer = shard.heartbeat(join("alice", "orders"))
    assert isinstance(answer, ApiError) and answer.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(shard.groups[GROUP], ClassicGroup)
    return answer.message


def ask(shard: ConsumerShard, api: str, request: Any, version: int) -> Any:
    method = getattr(shard.machine, api)
    answer = shard.run(lambda now_ms: method(request, Caller("client", "/host", version), now_ms)).value
    return answer.code if isinstance(answer, ApiError) else answer


def protocol(name: str = "range", metadata: bytes | None = None) -> list[JoinGroupRequestProtocol]:
    said = subscription("orders") if metadata is None else metadata
    return [JoinGroupRequestProtocol(name=name, metadata=said)]


def classic_join(shard: ConsumerShard, member_id: str = "", *, version: int = 9, **more: Any) -> Any:
    said: dict[str, Any] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": protocol(),
        **more,
    }
    return ask(shard, "join_group", JoinGroupRequest(group_id=GROUP, member_id=member_id, **said), version)


# --- Upgrades


def test_members_keep_what_they_have_and_their_generation_is_their_epoch() -> None:
    shard = classic_shard(member("a", 0, 1), member("b", 2, 3))
    assert isinstance(shard.heartbeat(join("alice", "orders")), ConsumerGroupHeartbeatResponse)
    group = shard.group
    assert group.group_epoch == 8
    assert group.members["a"].current.assigned == {ORDERS: {0: 7, 1: 7}}
    assert group.members["b"].current.member_epoch == 7
    assert group.members["a"].is_classic and not group.members["alice"].is_classic
    shard.reload()
    assert shard.group.members == group.members


def test_a_partition_that_two_classic_members_were_given_has_one_owner() -> None:
    shard = classic_shard(member("a", 0, 1, 1), member("b", 1, 2))
    shard.heartbeat(join("alice", "orders"))
    assert shard.group.members["a"].current.assigned == {ORDERS: {0: 7, 1: 7}}
    assert shard.group.members["b"].current.assigned == {ORDERS: {2: 7}}


def test_assignments_of_deleted_topics_are_dropped_when_a_classic_group_is_converted() -> None:
    shard = classic_shard(member("a", 0, 1))
    shard.delete_topic("orders")
    shard.heartbeat(join("alice", "orders"))
    assert shard.group.members["a"].current.assigned == {}


def test_a_member_that_has_not_been_assigned_anything_yet_has_nothing() -> None:
    shard = classic_shard(member("a", assignment=b""))
    shard.heartbeat(join("alice", "orders"))
    assert shard.group.members["a"].current.assigned == {}


def test_a_subscription_of_the_future_is_read_as_far_as_it_is_known() -> None:
    shard = classic_shard(member("a", 0, subscription=subscription("orders", version=9)))
    shard.heartbeat(join("alice", "orders"))
    assert shard.group.members["a"].subscription.topic_names == ("orders",)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"subscription": b""}, "malformed"),
        ({"subscription": b"\xff\xff\0"}, "malformed"),
        ({"subscription": b"\0\1\xff\xff\xff"}, "malformed"),
        ({"assignment": b"\0\1\0\0"}, "malformed"),
        ({"assignment": assignment(0, user_data=b"mine")}, "custom assignor"),
    ],
)
def test_a_group_whose_members_cannot_be_understood_stays_classic(wrong: dict[str, bytes], reason: str) -> None:
    assert reason in refusal(classic_shard(member("a", 0), member("b", 1, **wrong)))


def test_a_group_of_others_than_consumers_stays_classic() -> None:
    assert "consumer embedded protocol" in refusal(classic_shard(member("a", 0), protocol_type="connect"))


def test_a_group_that_is_too_large_stays_classic() -> None:
    shard = classic_shard(member("a", 0), member("b", 1), group_consumer_max_size="1")
    assert "maximum size" in refusal(shard)


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_group_that_must_not_change_stays_classic(policy: str) -> None:
    assert "disabled" in refusal(classic_shard(member("a", 0), group_consumer_migration_policy=policy))


# --- Downgrades


def mixed_shard(**settings: str) -> ConsumerShard:
    """Alice has just joined in epoch 8. Of the others, b has one partition too many."""
    shard = classic_shard(member("a", 0, 1), member("b", 2, 3), **settings)
    shard.heartbeat(join("alice", "orders"))
    return shard


def test_the_generation_continues_from_the_epoch() -> None:
    shard = mixed_shard()
    shard.heartbeat(beat("alice", -1))
    group = shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert (group.generation, sorted(group.members)) == (8, ["a", "b"])
    assert group.members["b"].assignment == b"\0\3" + assignment(2, 3)[2:]
    shard.wait(0)
    assert group.state_name == "PreparingRebalance"


def test_a_member_with_another_protocol_than_the_downgraded_group_is_told_to_join_again() -> None:
    shard = mixed_shard()
    both = [*protocol("sticky"), *protocol("range")]
    joined = classic_join(shard, "a", protocols=both)
    assert joined.protocol_name == "sticky"
    shard.heartbeat(beat("alice", -1))
    group = shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert (group.generation, group.protocol_name) == (joined.generation_id, "range")
    late = SyncGroupRequest(
        group_id=GROUP,
        generation_id=joined.generation_id,
        member_id="a",
        protocol_type="consumer",
        protocol_name=joined.protocol_name,
    )
    assert ask(shard, "sync_group", late, 5) is ErrorCode.REBALANCE_IN_PROGRESS
    shard.wait(0)
    assert group.state_name == "PreparingRebalance"
    assert ask(shard, "sync_group", late, 5) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_downgrade_without_other_changes_rebalances_if_a_member_was_told_another_protocol() -> None:
    shard = classic_shard(member("a", 0, 1), member("b", 2, 3))
    shard.heartbeat(join("alice", "orders", instance_id="al"))
    classic_join(shard, "a", protocols=protocol(metadata=subscription("orders", generation=7)))
    joined = classic_join(shard, "b", protocols=[*protocol("sticky"), *protocol("range")])
    assert joined.protocol_name == "sticky"
    shard.heartbeat(beat("alice", shard.group.group_epoch, topic_partitions=[]))
    assert shard.group.is_settled
    assert classic_join(shard, group_instance_id="al").error_code == ErrorCode.REBALANCE_IN_PROGRESS
    group = shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert (group.generation, group.protocol_name) == (joined.generation_id, "range")
    late = SyncGroupRequest(
        group_id=GROUP,
        generation_id=joined.generation_id,
        member_id="b",
        protocol_type="consumer",
        protocol_name=joined.protocol_name,
    )
    assert ask(shard, "sync_group", late, 5) is ErrorCode.REBALANCE_IN_PROGRESS
    shard.wait(0)
    assert group.state_name == "PreparingRebalance"


@pytest.mark.parametrize("settings", [{"group_consumer_migration_policy": "upgrade"}, {"group_max_size": "1"}])
def test_a_group_that_cannot_be_a_classic_one_stays_as_it_is(settings: dict[str, str]) -> None:
    shard = mixed_shard(**settings)
    shard.heartbeat(beat("alice", -1))
    assert isinstance(shard.groups[GROUP], ConsumerGroup)


# --- Members of the classic protocol


def test_a_dynamic_member_is_given_an_id_first_and_nothing_is_remembered_of_it() -> None:
    shard = mixed_shard()
    answer = classic_join(shard)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("client-") and answer.member_id not in shard.group.members
    joined = classic_join(shard, answer.member_id)
    assert isinstance(joined, JoinGroupResponse) and joined.generation_id == shard.group.group_epoch
    assert classic_join(shard, version=3).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": protocol("sticky")}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": protocol(metadata=b"?")}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_instance_id": "nobody's"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_malformed_join_is_refused(wrong: dict[str, Any], code: ErrorCode) -> None:
    assert classic_join(mixed_shard(), "a", **wrong) is code


@pytest.mark.parametrize(
    ("who", "generation", "code"),
    [
        ("alice", 8, ErrorCode.UNKNOWN_MEMBER_ID),
        ("nobody", 7, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", 6, ErrorCode.ILLEGAL_GENERATION),
        ("a", 8, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_only_members_of_the_classic_protocol_may_speak_it(who: str, generation: int, code: ErrorCode) -> None:
    shard = mixed_shard()
    beats = HeartbeatRequest(group_id=GROUP, member_id=who, generation_id=generation)
    assert ask(shard, "heartbeat", beats, 4) is code
    syncs = SyncGroupRequest(group_id=GROUP, member_id=who, generation_id=generation)
    assert ask(shard, "sync_group", syncs, 4) is code


def test_a_full_group_accepts_no_member() -> None:
    assert classic_join(mixed_shard(group_consumer_max_size="3"), "c") is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_members_leave_together_or_by_their_names() -> None:
    shard = classic_shard(member("a", 0), member("b", 1, group_instance_id="bee"), member("c", 2))
    shard.heartbeat(join("alice", "orders"))
    leaving = [
        MemberIdentity(member_id="a"),
        MemberIdentity(member_id="", group_instance_id="bee"),
        MemberIdentity(member_id="alice"),
        MemberIdentity(member_id="a2"),
        MemberIdentity(member_id="c", group_instance_id="bee"),
    ]
    answer = ask(shard, "leave_group", LeaveGroupRequest(group_id=GROUP, members=leaving), 5)
    assert [ErrorCode(each.error_code).name for each in answer.members] == [
        "NONE",
        "NONE",
        "UNKNOWN_MEMBER_ID",
        "UNKNOWN_MEMBER_ID",
        "FENCED_INSTANCE_ID",
    ]
    assert sorted(shard.group.members) == ["alice", "c"]
    assert ask(shard, "leave_group", LeaveGroupRequest(group_id=GROUP, member_id="c"), 2).error_code == ErrorCode.NONE
    assert sorted(shard.group.members) == ["alice"]


def test_members_are_not_asked_to_join_while_a_target_is_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joining again would not give them partitions yet."""
    monkeypatch.setattr(target, "_MOST_AT_ONCE", 0)
    shard = mixed_shard()
    assert shard.group.group_epoch > shard.group.assignment_epoch
    beats = HeartbeatRequest(group_id=GROUP, generation_id=7, member_id="b")
    assert ask(shard, "heartbeat", beats, 4).error_code == ErrorCode.NONE
    shard.wait(0)
    assert ask(shard, "heartbeat", beats, 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_join_that_comes_late_confirms_nothing() -> None:
    """A member says in which generation it was when it joined: what it owned before the newest one does not count."""
    shard = mixed_shard()
    late, now = (protocol(metadata=subscription("orders", generation=generation)) for generation in (6, 7))
    assert classic_join(shard, "b", protocols=late).generation_id == 7
    assert shard.group.owners[ORDERS] == {0: "a", 1: "a", 2: "b", 3: "b"}
    assert classic_join(shard, "b", protocols=now).generation_id == 8
    assert shard.group.owners[ORDERS] == {0: "a", 1: "a", 2: "b"}


# --- Waiting requests


def test_requests_that_wait_in_a_converted_group_are_answered_even_if_the_conversion_cannot_be_written() -> None:
    shard = classic_shard(member("ada", 0, 1, 2, 3))
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=300_000,
        protocol_type="consumer",
        protocols=protocol(),
    )
    waiting = shard.run(lambda now_ms: shard.machine.join_group(request, Caller("bea", "/host", 3), now_ms))
    assert not waiting.done
    shard.holding = True
    answer = join("alice", "orders")
    shard.run(lambda now_ms: shard.machine.consumer_group_heartbeat(answer, Caller("alice", "/host", 1), now_ms))
    shard.fail()
    assert waiting.done
    assert isinstance(waiting.value, ApiError) and waiting.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
