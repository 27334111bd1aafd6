"""Deleting records from the start of a log."""

import errno

from quire.storage.log import Log
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, NOW_MS, SMALL_SEGMENTS, append_values, letters, open_log, read_all


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
