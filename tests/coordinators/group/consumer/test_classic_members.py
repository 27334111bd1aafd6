"""Members of the classic protocol in a consumer group, beyond the transcripts: names and records that are too long."""

from typing import Any

import pytest

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.runtime.machine import Caller
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.coordinators.group.consumer.consumer_shard import GROUP, ConsumerShard, beat, join

LONGEST_TEXT_BYTES = 0x7FFF
SUBSCRIPTION_TO_ORDERS = b"\0\0" + b"\0\0\0\1" + b"\0\6orders" + b"\xff\xff\xff\xff"


@pytest.fixture
def shard() -> ConsumerShard:
    """A consumer group of one, alice."""
    shard = ConsumerShard({"group.consumer.assignment.interval.ms": "0", "message.max.bytes": "4000"})
    shard.max_batch_bytes = 4000
    shard.put_topic("orders", 4)
    shard.heartbeat(join("alice", "orders"))
    return shard


def enter(shard: ConsumerShard, member_id: str = "", *, client_id: str = "old", version: int = 9, **more: Any) -> Any:
    metadata = SUBSCRIPTION_TO_ORDERS + bytes(more.pop("padding", 0))
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        **more,
    )
    caller = Caller(client_id, "/127.0.0.1", version)
    return shard.run(lambda now_ms: shard.machine.join_group(request, caller, now_ms)).value


def test_an_id_has_no_more_than_the_beginning_of_a_long_name(shard: ConsumerShard) -> None:
    shard.max_batch_bytes = None
    given = enter(shard, client_id="\N{GRINNING FACE}" * 8_191)
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert len(given.member_id.encode()) <= LONGEST_TEXT_BYTES
    static = enter(shard, group_instance_id="i" * LONGEST_TEXT_BYTES)
    assert static.error_code == ErrorCode.NONE
    assert static.member_id in shard.group.members


def test_a_group_whose_classic_record_would_not_fit_stays_a_consumer_group(shard: ConsumerShard) -> None:
    for name in ("ada", "bea"):
        assert enter(shard, name, padding=2000).error_code == ErrorCode.NONE
    left = shard.heartbeat(beat("alice", -1))
    assert getattr(left, "error_code", None) == ErrorCode.NONE
    assert sorted(shard.group.members) == ["ada", "bea"]
    assert enter(shard, "ada", padding=2000).generation_id == shard.group.group_epoch


def test_a_silent_classic_member_is_removed(shard: ConsumerShard) -> None:
    for name in ("ada", "bea"):
        enter(shard, name, padding=2000)
    for _ in range(6):
        shard.wait(9_000)
        for name in ("ada", "bea"):
            enter(shard, name, padding=2000)
    assert isinstance(shard.groups[GROUP], ConsumerGroup)
    assert sorted(shard.group.members) == ["ada", "bea"]
    # One of them fits.
    shard.wait(9_000)
    enter(shard, "ada", padding=2000)
    shard.wait(2_000)
    assert isinstance(shard.groups[GROUP], ClassicGroup)


def test_a_member_whose_removal_failed_still_has_a_session(shard: ConsumerShard) -> None:
    enter(shard, "ada")
    shard.max_batch_bytes = 10
    assert getattr(shard.heartbeat(beat("alice", -1)), "code", None) is ErrorCode.UNKNOWN_SERVER_ERROR
    shard.max_batch_bytes = None
    shard.wait(60_000)
    assert shard.groups[GROUP].is_empty


def test_a_member_whose_removal_does_not_fit_into_the_log_is_removed_when_it_fits(shard: ConsumerShard) -> None:
    shard.max_batch_bytes = 10
    shard.wait(60_000)
    assert list(shard.group.members) == ["alice"]
    shard.max_batch_bytes = None
    shard.wait(60_000)
    assert shard.group.is_empty
    assert not [key for key in shard.timers.keys if "alice" in str(key)]
