"""Appending, reading, rolling, truncating and deleting, on a log that is open."""

import errno

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records.batch import walk_batches
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.positions import LogPosition
from simulator.disk import SimDisk
from tests.storage.batches import (
    FOLDER,
    NOW_MS,
    append,
    append_values,
    batch,
    open_log,
    read_all,
    replicate,
    values_of,
)

SMALL_SEGMENTS = LogConfig(segment_bytes=300, index_interval_bytes=100)


def letters(count: int) -> list[bytes]:
    return [bytes([65 + at]) * 50 for at in range(count)]


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

    def test_a_follower_keeps_offsets_and_epochs(self, disk: SimDisk) -> None:
        log = open_log(disk)
        replicate(log, batch(b"a", b"b", base_offset=0, leader_epoch=1), batch(b"c", base_offset=2, leader_epoch=4))
        info = replicate(log, batch(b"d", base_offset=10, leader_epoch=4))
        assert (info.base_offset, info.last_offset, log.end_offset) == (10, 10, 11)
        assert read_all(log) == [(0, b"a"), (1, b"b"), (2, b"c"), (10, b"d")]
        assert log.epochs.entries == [(1, 0), (4, 2)]

    def test_a_follower_refuses_offsets_that_do_not_rise(self, disk: SimDisk) -> None:
        log = open_log(disk)
        replicate(log, batch(b"a", b"b", base_offset=0, leader_epoch=0))
        for overlapping in (0, 1):
            with pytest.raises(ApiError) as caught:
                replicate(log, batch(b"x", base_offset=overlapping, leader_epoch=0))
            assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
        assert values_of(log) == [b"a", b"b"]

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

    def test_rolling_is_told_and_an_empty_segment_is_not_rolled(self, disk: SimDisk) -> None:
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
        with pytest.raises(OSError):
            append_values(log, b"x")
        append_values(log, *letters(1))
        assert values_of(log) == [*letters(2), *letters(1)]
        assert len(log.segments) == 2


class TestReading:
    def test_a_slice_begins_with_the_batch_that_holds_the_offset(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append(log, batch(b"a", b"b", b"c"))
        append(log, batch(b"d", b"e"))
        for offset, base in ((0, 0), (2, 0), (3, 3), (4, 3)):
            part = log.read(offset, 1000)
            assert part is not None
            assert walk_batches(part.read())[0].base_offset == base

    def test_a_slice_stays_within_one_segment(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(6))
        part = log.read(0, 1 << 20)
        assert part is not None
        assert [header.base_offset for header in walk_batches(part.read())] == [0, 1]

    def test_a_slice_is_at_most_as_long_as_asked_for_and_may_cut_a_batch(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, *letters(4))
        size = log.size_bytes // 4
        part = log.read(1, 2 * size + 5)
        assert part is not None
        assert (part.position, part.size) == (size, 2 * size + 5)

    def test_the_first_batch_comes_whole_or_not_at_all(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, *letters(2))
        size = log.size_bytes // 2
        part = log.read(0, 1)
        assert part is not None and part.size == size
        assert log.read(0, size - 1, min_one_batch=False) is None
        part = log.read(0, size, min_one_batch=False)
        assert part is not None and part.size == size

    def test_nothing_at_or_beyond_the_upper_bound_is_read(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(6))
        for limit in range(7):
            upper = log.position_of(limit)
            for offset in range(7):
                part = log.read(offset, 1 << 20, upper=upper)
                if offset >= limit:
                    assert part is None
                else:
                    assert part is not None
                    offsets = [header.base_offset for header in walk_batches(part.read())]
                    assert offsets == [each for each in range(offset, limit) if each // 2 == offset // 2]

    def test_a_batch_larger_than_asked_for_is_never_read_past_the_upper_bound(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, b"a")
        upper = log.end
        append_values(log, b"b")
        part = log.read(0, 1, upper=upper)
        assert part is not None and part.size == upper.position

    def test_offsets_outside_the_log_are_out_of_range(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, b"a", b"b")
        log.delete_records_before(1)
        assert log.read(2, 100) is None
        for offset in (0, 3, -1):
            with pytest.raises(ApiError) as caught:
                log.read(offset, 100)
            assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE

    def test_offsets_in_a_gap_lead_to_the_next_batch_even_in_the_next_segment(self, disk: SimDisk) -> None:
        log = open_log(disk, LogConfig(compact=True))
        replicate(log, batch(b"a", base_offset=0, leader_epoch=0), batch(b"b", base_offset=5, leader_epoch=0))
        log.roll(NOW_MS)
        replicate(log, batch(b"c", base_offset=20, leader_epoch=0))
        assert read_all(log, 1) == [(5, b"b"), (20, b"c")]
        assert read_all(log, 6) == [(20, b"c")]
        assert log.position_of(6) == LogPosition(6, 6, 0)

    def test_a_reader_that_follows_the_writer_needs_no_read_and_no_look_up(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, *letters(3))
        assert log.read(3, 1 << 20, upper=log.end) is None
        for value in letters(20):
            at = append_values(log, value).base_offset
            disk.fail_when(lambda operation: operation.kind == "read", times=1)
            part = log.read(at, 1 << 20, upper=log.end)
            with pytest.raises(OSError):
                disk.read_file(f"{FOLDER}/00000000000000000000.log")
            assert part is not None
            assert walk_batches(part.read())[0].base_offset == at

    def test_a_reader_that_goes_on_where_it_stopped_is_found_again(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, *letters(3))
        log.read(0, 1 << 20, upper=log.end)
        append(log, batch(b"x"), batch(b"y"))
        disk.fail_when(lambda operation: operation.kind == "read", times=1)
        part = log.read(3, 1 << 20)
        assert part is not None and part.position == log.position_of(3).position

    def test_rolling_does_not_confuse_where_readers_go_on(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, *letters(3))
        upper = log.end
        log.roll(NOW_MS)
        log.read(0, 1 << 20, upper=upper)
        append_values(log, b"x")
        assert read_all(log, 3) == [(3, b"x")]

    def test_positions_of_all_offsets_lead_to_their_batches(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(20))
        again = open_log(disk, SMALL_SEGMENTS)
        for offset in range(20):
            position = again.position_of(offset)
            assert position.segment_base == offset // 2 * 2
            assert position.position == offset % 2 * 118
        assert again.position_of(20) == again.end


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


class TestDeleting:
    def test_segments_wholly_before_the_start_go(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(7))
        log.delete_records_before(5)
        assert (log.start_offset, len(log.segments)) == (5, 2)
        assert [offset for offset, _ in read_all(log)] == [5, 6]
        names = disk.list_dir(FOLDER)
        assert [name for name in names if name.endswith((".log", ".deleted"))] == [
            "00000000000000000004.log",
            "00000000000000000006.log",
        ]
        assert not any(name.startswith(("00000000000000000000", "00000000000000000002")) for name in names)

    def test_the_active_segment_stays_even_if_all_is_deleted(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(3))
        log.delete_records_before(3)
        assert (log.start_offset, log.end_offset, len(log.segments)) == (3, 3, 1)
        assert read_all(log) == []
        append_values(log, b"x")
        assert read_all(log) == [(3, b"x")]

    def test_epochs_before_the_start_are_forgotten(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, b"a", b"b", leader_epoch=1)
        append_values(log, b"c", leader_epoch=2)
        log.delete_records_before(1)
        assert log.epochs.entries == [(1, 1), (2, 2)]
        log.delete_records_before(2)
        assert log.epochs.entries == [(2, 2)]
        assert log.epoch_end(1) == (1, 2)

    def test_readers_keep_what_they_are_reading(self, disk: SimDisk) -> None:
        retired = []
        log = Log.open(
            disk,
            FOLDER,
            SMALL_SEGMENTS,
            clean=False,
            now_ms=NOW_MS,
            remove_retired=lambda segments, delay_ms: retired.append((segments, delay_ms)),
        )
        append_values(log, *letters(4))
        part = log.read(0, 1 << 20)
        assert part is not None
        before = part.read()
        log.delete_records_before(3)
        assert part.read() == before
        ((segments, delay_ms),) = retired
        assert delay_ms == 60_000
        assert "00000000000000000000.log.deleted" in disk.list_dir(FOLDER)
        segments.remove()
        assert not any(name.endswith(".deleted") for name in disk.list_dir(FOLDER))

    def test_a_disk_without_room_for_another_name_keeps_nothing_in_use(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(7))
        disk.fail_when(lambda operation: operation.kind == "rename", errno.ENOSPC, times=100)
        log.delete_records_before(5)
        assert [offset for offset, _ in read_all(log)] == [5, 6]
        assert not any(name.startswith("00000000000000000000") for name in disk.list_dir(FOLDER))


class TestTruncating:
    def test_a_disk_without_room_for_another_name_brings_nothing_back(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(7))
        disk.fail_when(lambda operation: operation.kind == "rename", errno.ENOSPC, times=100)
        log.truncate_to(3)
        disk = disk.kill()
        assert values_of(open_log(disk, SMALL_SEGMENTS)) == letters(3)

    @pytest.mark.parametrize("offset", range(9))
    def test_everything_from_the_offset_on_goes(self, disk: SimDisk, offset: int) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(8))
        log.truncate_to(offset)
        assert log.end_offset == offset
        assert values_of(log) == letters(8)[:offset]
        append_values(log, b"x")
        assert values_of(log) == [*letters(8)[:offset], b"x"]
        log.close()
        assert values_of(open_log(disk, SMALL_SEGMENTS, clean=True)) == [*letters(8)[:offset], b"x"]

    @pytest.mark.parametrize("suffix", [".index", ".timeindex"])
    def test_an_index_that_was_cut_short_is_made_anew(self, disk: SimDisk, suffix: str) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(8))
        log.close()
        file = disk.open(f"{FOLDER}/00000000000000000004{suffix}")
        file.truncate(file.size() - 1)
        file.close()
        log = open_log(disk, SMALL_SEGMENTS, clean=True)
        log.truncate_to(5)
        assert (log.end_offset, values_of(log)) == (5, letters(5))

    def test_within_a_batch_the_whole_batch_goes(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append(log, batch(b"a", b"b"))
        append(log, batch(b"c", b"d", b"e"))
        log.truncate_to(4)
        assert log.end_offset == 2
        assert values_of(log) == [b"a", b"b"]

    def test_epochs_producers_and_recovery_point_follow(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        for sequence in range(6):
            data = batch(bytes(40), producer_id=5, producer_epoch=0, sequence=sequence)
            append(log, data, leader_epoch=sequence // 3)
        append(log, batch(b"x", producer_id=6, producer_epoch=0, sequence=0), leader_epoch=2)
        log.flush()
        assert log.recovery_point == 7
        log.truncate_to(4)
        assert log.recovery_point == 2, "the truncation itself is not durable yet"
        assert log.epochs.entries == [(0, 0), (1, 3)]
        (producer,) = log.producers()
        assert (producer.producer_id, producer.last_sequence, producer.last_offset) == (5, 3, 3)
        (again,) = walk_batches(batch(bytes(40), producer_id=5, producer_epoch=0, sequence=4))
        assert log.check_producer(again) is None

    def test_starting_over_at_an_offset_forgets_everything(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        for sequence in range(6):
            append(log, batch(bytes(40), producer_id=5, producer_epoch=0, sequence=sequence), leader_epoch=3)
        log.truncate_fully_and_start_at(1000)
        assert (log.start_offset, log.end_offset) == (1000, 1000)
        assert (log.epochs.entries, log.producers(), log.size_bytes) == ([], [], 0)
        assert disk.list_dir(FOLDER) == ["00000000000000001000.log"]
        append_values(log, b"x", leader_epoch=4)
        assert read_all(log) == [(1000, b"x")]

    def test_starting_over_makes_nothing_durable_by_itself(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, *letters(2))
        log.flush()
        append_values(log, *letters(2))
        log.truncate_fully_and_start_at(1000)
        assert log.recovery_point == 2
        append_values(log, b"x")
        log.flush()
        assert log.recovery_point == 1001

    def test_starting_over_at_the_base_of_a_segment_works_too(self, disk: SimDisk) -> None:
        log = open_log(disk, SMALL_SEGMENTS)
        append_values(log, *letters(5))
        log.truncate_fully_and_start_at(2)
        append_values(log, b"x")
        assert read_all(log) == [(2, b"x")]


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
