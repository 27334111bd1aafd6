"""Snapshot files: written whole or not at all, read whole or refused."""

import pytest

from quire.protocol.messages.metadata_records import TopicRecord
from quire.protocol.schema import Message
from quire.raft.log_summary import LogPosition
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.raft.snapshot_file import (
    SnapshotError,
    encode_snapshot,
    file_name,
    list_snapshots,
    parse_name,
    read_snapshot,
    read_timestamp,
    write_snapshot,
)
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom

POSITION = LogPosition(epoch=3, offset=70)
NAME = "00000000000000000070-0000000003.checkpoint"
VOTERS = VoterSet([Voter(ReplicaKey(1, b"d" * 16), (Endpoint("CONTROLLER", "localhost", 9093),))])


def topics(count: int) -> list[Message]:
    return [TopicRecord(name=f"topic-{number}", topic_id=number.to_bytes(16)) for number in range(count)]


def written(disk: SimDisk, records: list[Message]) -> None:
    disk.make_dirs("/meta")
    disk.sync_dir("/")
    batches = encode_snapshot(
        [(record, 0) for record in records],
        epoch=3,
        now_ms=1000,
        last_contained_timestamp_ms=900,
        kraft_version=1,
        voters=VOTERS,
    )
    write_snapshot(disk, "/meta", NAME, batches)


@pytest.mark.parametrize("count", [0, 1, 2500])
def test_a_snapshot_is_read_unchanged(count: int) -> None:
    disk = SimDisk()
    written(disk, topics(count))
    snapshot = read_snapshot(disk, "/meta", NAME)
    assert snapshot.records == topics(count)
    assert snapshot.position == POSITION
    assert snapshot.last_contained_timestamp_ms == read_timestamp(disk, "/meta", NAME) == 900
    assert (snapshot.control.kraft_version, snapshot.control.voters) == (1, VOTERS)


def test_names_say_where_the_log_continues() -> None:
    assert file_name(POSITION) == NAME
    assert parse_name(NAME) == POSITION
    assert parse_name("bootstrap.checkpoint") is None
    assert parse_name(NAME + ".part") is None


def test_snapshots_are_listed_by_offset() -> None:
    disk = SimDisk()
    disk.make_dirs("/meta")
    for offset, epoch in ((100, 2), (20, 9), (3, 1)):
        disk.open(f"/meta/{file_name(LogPosition(epoch, offset))}", create=True)
    disk.open("/meta/00000000000000000000.log", create=True)
    assert [each.offset for each in list_snapshots(disk, "/meta")] == [3, 20, 100]


def test_every_cut_and_every_flipped_byte_is_noticed() -> None:
    disk = SimDisk()
    written(disk, topics(3))
    content = disk.read_file(f"/meta/{NAME}")
    for damaged in [content[:size] for size in range(len(content))] + [
        # The first 17 bytes of a batch are its position in the log, which the checksum does not cover.
        content[:at] + bytes([content[at] ^ 0x40]) + content[at + 1 :]
        for at in range(17, 150)
    ]:
        file = disk.open("/meta/damaged", create=True)
        file.truncate(0)
        file.pwritev([damaged], 0)
        with pytest.raises(SnapshotError):
            read_snapshot(disk, "/meta", "damaged")


def test_a_crash_leaves_no_snapshot_or_the_whole() -> None:
    for number in range(1, 100):
        random = SimRandom(number)
        disk = SimDisk(random, crash_at=number)
        try:
            written(disk, topics(5))
        except Crashed:
            after = disk.crash(random)
            if after.exists(f"/meta/{NAME}"):
                assert read_snapshot(after, "/meta", NAME).records == topics(5)
        else:
            assert number > 5
            return
    raise AssertionError("it never finished")
