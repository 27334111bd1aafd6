"""What a shard needs from its classic groups besides requests: records, loading, unloading, other protocols."""

from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.result import CoordinatorResult
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from tests.coordinators.group.classic.asking import beat, group_of, join, refusal, shard_at_once, stable, sync
from tests.coordinators.group.classic.classic_machine import ClassicShard


def delete(shard: ClassicShard) -> None:
    shard.run(lambda now_ms: CoordinatorResult(None, group_of(shard).tombstones()))


def member(member_id: str) -> MemberMetadata:
    return MemberMetadata(member_id=member_id, client_id="c", client_host="h", session_timeout=9_000)


def test_a_deleted_group_leaves_nothing_behind() -> None:
    shard = shard_at_once()
    group_before = shard.machine.classic.offsets_only("g")
    join(shard, version=4)
    delete(shard)
    assert not shard.machine.groups and not shard.timers.keys
    assert group_before.state is ClassicState.DEAD
    shard.reload()
    assert not shard.machine.groups


def test_a_tombstone_of_an_unknown_group_is_accepted() -> None:
    shard = shard_at_once()
    shard.machine.classic.replay(GroupMetadataKey(group="gone"), None)


def test_waiting_members_are_sent_back_when_the_group_changes_its_protocol() -> None:
    shard = shard_at_once()
    leader, follower = stable(shard, 2)
    waiting = join(shard, leader)
    delete(shard)
    shard.wait(0)
    assert refusal(waiting) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not shard.timers.keys
    assert refusal(beat(shard, follower, 1)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_of_another_protocol_that_becomes_classic_has_sessions_from_then_on() -> None:
    shard = shard_at_once()
    value = GroupMetadataValue(
        protocol_type="consumer", generation=7, protocol="range", leader="a", members=[member("a"), member("b")]
    )
    shard.machine.classic.replay(GroupMetadataKey(group="g"), value)
    assert beat(shard, "a", 7).value.error_code == ErrorCode.NONE
    shard.wait(9_000)
    assert refusal(beat(shard, "b", 7)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_when_unloaded_every_waiting_request_gets_the_reason() -> None:
    shard = shard_at_once()
    leader, _ = stable(shard, 2)
    in_join = join(shard, leader)
    shard.reload(ErrorCode.NOT_COORDINATOR)
    assert refusal(in_join) is ErrorCode.NOT_COORDINATOR
    leader, follower = group_of(shard).members
    join(shard, leader), join(shard, follower)
    in_sync = sync(shard, follower, 2)
    shard.reload(ErrorCode.NOT_COORDINATOR)
    assert refusal(in_sync) is ErrorCode.NOT_COORDINATOR


def test_a_described_group_shows_what_members_offer_only_when_it_is_settled() -> None:
    shard = shard_at_once()
    (member_id,) = stable(shard, metadata=b"topics", instance_id="one", version=9)
    described = shard.machine.classic.describe(group_of(shard))
    assert (described.group_id, described.group_state) == ("g", "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "range")
    (shown,) = described.members
    assert (shown.member_id, shown.group_instance_id, shown.client_id, shown.client_host) == (
        member_id,
        "one",
        "client",
        "host",
    )
    assert (shown.member_metadata, shown.member_assignment) == (b"topics", b"of " + member_id.encode())
    join(shard, version=3)
    described = shard.machine.classic.describe(group_of(shard))
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [shown.member_metadata for shown in described.members] == [b"", b""]


def test_a_group_that_only_keeps_offsets_is_made_once_and_taken_over_by_members() -> None:
    shard = shard_at_once()
    group = shard.machine.classic.offsets_only("g")
    assert shard.machine.classic.offsets_only("g") is group
    stable(shard)
    assert group_of(shard) is group and group.generation == 1
