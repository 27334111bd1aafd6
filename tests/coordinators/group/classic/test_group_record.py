"""The record of a group: its bytes, and that it keeps everything."""

from quire.coordinators.runtime.record import encode_key, encode_value
from quire.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from tests.coordinators.group.classic.asking import group_of, join, shard_at_once, stable
from tests.coordinators.group.classic.classic_machine import ClassicMachine, ClassicShard


def last_value(shard: ClassicShard) -> GroupMetadataValue:
    value = ClassicMachine.record_types.decode(shard.log[-1].key, shard.log[-1].value).value
    assert isinstance(value, GroupMetadataValue)
    return value


def test_it_is_written_in_the_version_that_kafka_writes() -> None:
    shard = shard_at_once()
    stable(shard)
    key, value = shard.log[-1].key, shard.log[-1].value
    assert key == b"\0\2" + b"\0\1g"
    assert value is not None and value[:2] == b"\0\3"
    assert value[2:].startswith(b"\0\x08consumer" + b"\0\0\0\1" + b"\0\5range")


def test_everything_of_a_generation_is_written() -> None:
    shard = shard_at_once()
    now_ms = shard.clock.now_ms()
    (member_id,) = stable(shard, instance_id="one", version=9, metadata=b"topics", session_timeout_ms=7_000)
    assert last_value(shard) == GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader=member_id,
        current_state_timestamp=now_ms,
        members=[
            MemberMetadata(
                member_id=member_id,
                group_instance_id="one",
                client_id="client",
                client_host="host",
                rebalance_timeout=60_000,
                session_timeout=7_000,
                subscription=b"topics",
                assignment=b"of " + member_id.encode(),
            )
        ],
    )


def test_an_empty_group_keeps_its_generation_and_what_it_was() -> None:
    shard = shard_at_once()
    stable(shard)
    shard.wait(10_000)
    written = last_value(shard)
    assert (written.generation, written.protocol_type, written.protocol, written.leader) == (2, "consumer", None, None)
    shard.reload()
    assert (group_of(shard).generation, group_of(shard).protocol_type) == (2, "consumer")
    join(shard, protocol_type="connect")
    shard.wait(0)
    assert (group_of(shard).generation, group_of(shard).protocol_type) == (3, "connect")


def test_a_replayed_record_restores_the_group() -> None:
    shard = shard_at_once()
    stable(shard, 3, metadata=b"topics")
    join(shard)
    before = group_of(shard)
    shard.reload()
    after = group_of(shard)
    for name in ("generation", "protocol_type", "protocol_name", "leader_id"):
        assert getattr(after, name) == getattr(before, name)
    assert [(m.member_id, m.protocols, m.assignment, m.session_timeout_ms) for m in after.members.values()] == [
        (m.member_id, m.protocols, m.assignment, m.session_timeout_ms) for m in list(before.members.values())[:3]
    ]
    assert after.state_name == "Stable"


def test_old_records_without_a_rebalance_timeout_or_a_time_are_understood() -> None:
    shard = shard_at_once()
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=4,
        protocol="range",
        leader="m",
        members=[MemberMetadata(member_id="m", client_id="c", client_host="h", session_timeout=9_000)],
    )
    shard.machine.classic.replay(GroupMetadataKey(group="g"), value)
    assert group_of(shard).members["m"].rebalance_timeout_ms == 9_000
    assert group_of(shard).state_since_ms == -1


def test_a_record_that_contradicts_itself_does_not_keep_the_shard_from_loading() -> None:
    shard = shard_at_once()
    twice = [
        MemberMetadata(member_id="m", group_instance_id="one", client_id="c", client_host="h", session_timeout=9_000),
        MemberMetadata(member_id="n", group_instance_id="one", client_id="c", client_host="h", session_timeout=9_000),
        MemberMetadata(member_id="m", client_id="c", client_host="h", session_timeout=9_000),
    ]
    value = GroupMetadataValue(protocol_type="consumer", generation=4, protocol="range", leader="x", members=twice)
    shard.machine.classic.replay(GroupMetadataKey(group="g"), value)
    assert list(group_of(shard).members) == ["m"]
    assert group_of(shard).is_leaderless


def test_records_pass_through_their_bytes_unchanged() -> None:
    shard = shard_at_once()
    stable(shard, 2)
    record = ClassicMachine.record_types.decode(shard.log[-1].key, shard.log[-1].value)
    assert (encode_key(record.key), encode_value(record)) == (shard.log[-1].key, shard.log[-1].value)
