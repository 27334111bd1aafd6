"""Appending as the leader: offsets, epochs, rolling and producers."""

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records.batch import walk_batches
from quire.storage.log_config import LogConfig
from quire.storage.positions import LogPosition
from simulator.disk import SimDisk
from tests.storage.batches import (
    FOLDER,
    NOW_MS,
    SMALL_SEGMENTS,
    append,
    append_values,
    batch,
    letters,
    open_log,
    read_all,
    replicate,
    values_of,
)


class TestAppending:
    def test_a_leader_gives_offsets_and_its_epoch(self, disk: SimDisk) -> None:
        log = open_log(disk)
        info = append(log, batch(b"a", b"b", base_offset=999), batch(b"c", base_offset=5), leader_epoch=7)
        assert (info.base_offset, info.last_offset, info.log_start_offset) == (0, 2, 0)
        info = append(log, batch(b"d"), leader_epoch=7)
        assert (info.base_offset, info.last_offset) == (3, 3)
        assert read_all(log) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
        written = walk_batches(disk.read_file(f"{FOLDER}/00000000000000000000.log"))
        assert [(header.base_offset, header.leader_epoch) for header in written] == [(0, 7), (2, 7), (3, 7)]

    def test_an_append_is_one_write(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append(log, batch(b"a"))
        for _ in range(100):
            operations = disk.operations
            append(log, batch(bytes(500)), batch(b"c"))
            assert disk.operations == operations + 1

    def test_more_than_a_segment_is_refused(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        with pytest.raises(ApiError, match=r"segment\.bytes") as caught:
            append(log, batch(bytes(300)))
        assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE

    def test_a_full_disk_leaves_the_log_as_it_was(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, b"a", b"b")
        disk.capacity_bytes = log.size_bytes + 20
        with pytest.raises(OSError, match="space"):
            append(log, batch(b"c", producer_id=5, producer_epoch=0, sequence=0))
        assert (log.end_offset, values_of(log), log.producers()) == (2, [b"a", b"b"], [])
        disk.capacity_bytes = None
        assert append(log, batch(b"d")).base_offset == 2
        assert values_of(open_log(disk)) == [b"a", b"b", b"d"]


class TestRolling:
    def test_a_full_segment_is_followed_by_one_named_after_its_first_offset(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(6))
        names = [name for name in disk.list_dir(FOLDER) if name.endswith(".log")]
        assert names == ["00000000000000000000.log", "00000000000000000002.log", "00000000000000000004.log"]
        assert values_of(log) == letters(6)

    def test_a_completed_segment_has_its_indexes_and_a_snapshot(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(3))
        assert disk.list_dir(FOLDER) == [
            "00000000000000000000.index",
            "00000000000000000000.log",
            "00000000000000000000.timeindex",
            "00000000000000000002.log",
            "00000000000000000002.snapshot",
        ]
        assert disk.read_file(f"{FOLDER}/00000000000000000000.index") == bytes.fromhex("00000001 00000076")
        assert disk.read_file(f"{FOLDER}/00000000000000000000.timeindex") == NOW_MS.to_bytes(8, "big") + bytes(4)

    def test_records_that_are_much_younger_begin_a_segment(self, disk: SimDisk) -> None:
        log = open_log(disk, LogConfig(segment_ms=1000))
        append(log, batch(b"a", timestamp=NOW_MS))
        append(log, batch(b"b", timestamp=NOW_MS + 1000))
        append(log, batch(b"c", timestamp=NOW_MS + 1001))
        assert len(log.segments) == 2
        assert log.end.segment_base == 2

    def test_offsets_too_far_from_the_base_begin_a_segment(self, disk: SimDisk) -> None:
        log = open_log(disk)
        replicate(log, batch(b"a", base_offset=5, leader_epoch=0))
        replicate(log, batch(b"b", base_offset=2**31 - 1, leader_epoch=0))
        assert len(log.segments) == 1
        replicate(log, batch(b"c", base_offset=2**31, leader_epoch=0))
        assert len(log.segments) == 2
        assert read_all(log) == [(5, b"a"), (2**31 - 1, b"b"), (2**31, b"c")]

    def test_rolling_is_reported_and_an_empty_segment_is_not_rolled(self, disk: SimDisk) -> None:
        log = open_log(disk)
        rolled: list[LogPosition] = []
        log.on_roll = lambda log: rolled.append(log.end)
        log.roll(NOW_MS)
        append_values(log, b"a")
        log.roll(NOW_MS)
        log.roll(NOW_MS)
        assert rolled == [LogPosition(1, 1, 0)]

    def test_a_roll_that_failed_is_tried_again(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(2))
        disk.fail_when(lambda operation: operation.kind == "create" and "2.log" in operation.path)
        with pytest.raises(OSError, match="Input/output error"):
            append_values(log, b"x")
        append_values(log, *letters(1))
        assert values_of(log) == [*letters(2), *letters(1)]
        assert len(log.segments) == 2


class TestProducers:
    def test_a_batch_that_was_appended_is_known_by_its_offsets(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, b"a")
        first = batch(b"b", b"c", producer_id=5, producer_epoch=0, sequence=0)
        (header,) = walk_batches(first)
        assert log.check_producer(header) is None
        append(log, first)
        original = log.check_producer(header)
        assert original is not None
        assert (original.first_offset, original.last_offset) == (1, 2)

    def test_batches_without_a_producer_are_not_checked(self, disk: SimDisk) -> None:
        log = open_log(disk)
        (header,) = walk_batches(batch(b"a"))
        assert log.check_producer(header) is None
        append_values(log, b"a")
        assert log.producers() == []


class TestEpochs:
    def test_appending_in_an_epoch_notes_where_it_began(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, b"a", b"b", leader_epoch=1)
        append_values(log, b"c", leader_epoch=5)
        log.assign_epoch(6)
        assert log.epochs.entries == [(1, 0), (5, 2), (6, 3)]
        assert log.epoch_end(1) == (1, 2)
        assert log.epoch_end(6) == (6, 3)
        assert log.epochs.epoch_of(1) == 1
