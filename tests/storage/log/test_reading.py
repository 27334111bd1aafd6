"""Reading slices of an open log, and the positions of offsets in it."""

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
)


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
            with pytest.raises(OSError, match="Input/output error"):
                disk.read_file(f"{FOLDER}/00000000000000000000.log")
            assert part is not None
            assert walk_batches(part.read())[0].base_offset == at

    def test_a_reader_that_continues_where_it_stopped_is_recognised(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, *letters(3))
        log.read(0, 1 << 20, upper=log.end)
        append(log, batch(b"x"), batch(b"y"))
        disk.fail_when(lambda operation: operation.kind == "read", times=1)
        part = log.read(3, 1 << 20)
        assert part is not None and part.position == log.position_of(3).position

    def test_rolling_does_not_confuse_the_positions_of_readers(self, disk: SimDisk) -> None:
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
