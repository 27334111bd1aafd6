"""Opening a log after a crash: torn at every byte, damaged, with files missing or left over."""

import logging

import pytest

from quire.protocol.records.batch import walk_batches
from quire.storage.leader_epochs import read_epochs
from quire.storage.log_config import LogConfig
from simulator.disk import SimDisk
from tests.storage.batches import (
    FOLDER,
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
from tests.storage.recovery.filled_log import damage, name, state_of, watch_reads, written

COMPACTED = LogConfig(segment_bytes=300, index_interval_bytes=100, compact=True)


class TestAfterACrash:
    def test_everything_is_found_again_from_any_recovery_point(self, disk: SimDisk) -> None:
        before = state_of(written(disk))
        for recovery_point in range(10):
            disk = disk.kill()
            again = open_log(disk, SMALL_SEGMENTS, recovery_point=recovery_point)
            assert state_of(again) == before
            assert again.recovery_point == min(recovery_point, 8)

    def test_only_what_lies_past_the_recovery_point_is_scanned(self, disk: SimDisk) -> None:
        written(disk).flush()
        reads = watch_reads(disk)
        open_log(disk, SMALL_SEGMENTS, recovery_point=5)
        assert list(dict.fromkeys(read.path for read in reads if read.path.endswith(".log"))) == [name(4), name(6)]

    def test_a_torn_tail_is_cut_at_every_byte(self, disk: SimDisk, caplog: pytest.LogCaptureFixture) -> None:
        log = written(disk, 8)
        whole = disk.read_file(name(6))
        (first, second) = walk_batches(whole)
        for size in range(first.size, first.size + second.size):
            disk.open(name(6)).truncate(size)
            caplog.clear()
            with caplog.at_level(logging.WARNING):
                again = open_log(disk, SMALL_SEGMENTS, recovery_point=6)
            assert values_of(again) == letters(7)
            assert again.end_offset == 7
            assert disk.file_size(name(6)) == first.size
            (producer,) = again.producers()
            assert producer.last_sequence == 6
            lines = [record.getMessage() for record in caplog.records if "cut" in record.getMessage()]
            if size == first.size:
                assert lines == []
            else:
                (line,) = lines
                assert f"cut {size - first.size} bytes off {name(6)} at position {first.size}, offset 7" in line
            file = disk.open(name(6))
            file.pwritev([whole], 0)
        assert values_of(log) == letters(8)

    def test_a_log_that_cannot_be_cut_leaves_no_file_open(self, disk: SimDisk) -> None:
        written(disk, 1).close_files()
        damage(disk, name(0), 100)
        disk.fail_when(lambda operation: operation.kind == "truncate")
        with pytest.raises(OSError, match="Input/output error"):
            open_log(disk, SMALL_SEGMENTS)
        assert disk.open_paths() == []

    @pytest.mark.parametrize("position", range(236))
    def test_a_flipped_byte_ends_the_log_before_its_batch(self, disk: SimDisk, position: int) -> None:
        written(disk)
        file = disk.open(name(4))
        assert file.size() == 236
        (byte,) = file.pread(1, position)
        file.pwritev([bytes([byte ^ 0x40])], position)
        again = open_log(disk, SMALL_SEGMENTS, recovery_point=4)
        damaged = 4 if position < 118 else 5
        in_the_epoch = position % 118 in range(12, 16)
        if position % 118 < 8:
            # Its offset alone is wrong, which no crash does: see test_recovery_scan.py.
            assert again.end_offset == 8
        elif in_the_epoch:
            # The checksum does not cover the epoch: a higher one is found because that of the next batch is lower.
            assert values_of(again) in (letters(damaged), letters(damaged + 1))
        else:
            assert values_of(again) == letters(damaged)
            assert again.end_offset == damaged
        assert append_values(again, b"x", leader_epoch=2**31 - 1).base_offset == again.end_offset - 1

    def test_segments_after_damage_go(self, disk: SimDisk, caplog: pytest.LogCaptureFixture) -> None:
        written(disk, 12)
        disk.open(name(4)).truncate(100)
        with caplog.at_level(logging.WARNING):
            again = open_log(disk, SMALL_SEGMENTS, recovery_point=2)
        assert values_of(again) == letters(4)
        assert "in 3 segments after it" in caplog.text
        assert [entry for entry in disk.list_dir(FOLDER) if entry.endswith(".log")] == [
            "00000000000000000000.log",
            "00000000000000000002.log",
            "00000000000000000004.log",
        ]

    def test_a_lost_end_of_a_segment_ends_the_log(self, disk: SimDisk, caplog: pytest.LogCaptureFixture) -> None:
        written(disk, 12)
        disk.open(name(4)).truncate(118)
        with caplog.at_level(logging.WARNING):
            again = open_log(disk, SMALL_SEGMENTS, recovery_point=3)
        assert values_of(again) == letters(5)
        assert again.end_offset == 5
        assert f"removed 708 bytes in 3 segments from {name(6)} on" in caplog.text

    def test_a_lost_segment_ends_the_log(self, disk: SimDisk) -> None:
        written(disk, 12)
        disk.remove(name(4))
        assert values_of(open_log(disk, SMALL_SEGMENTS)) == letters(4)

    @pytest.mark.parametrize(
        ("compacted", "recovery_point", "foreign", "ends"),
        [
            (False, 0, False, True),
            (False, 0, True, True),
            (True, 0, False, True),
            (True, 5, False, True),
            (True, 6, False, False),
            (False, 6, False, False),
            (True, 0, True, False),
        ],
    )
    def test_a_missing_segment_is_a_loss_beyond_the_recovery_point_unless_another_may_have_compacted_it(
        self, disk: SimDisk, compacted: bool, recovery_point: int, foreign: bool, ends: bool
    ) -> None:
        written(disk, 12)
        disk.remove(name(4))
        config = COMPACTED if compacted else SMALL_SEGMENTS
        found = values_of(open_log(disk, config, recovery_point=recovery_point, foreign=foreign))
        assert found == [*letters(4), *([] if ends else letters(12)[6:])]

    def test_a_compacted_log_continues_where_it_was_on_disk_though_its_last_batches_are_missing(
        self, disk: SimDisk
    ) -> None:
        log = written(disk, 7, COMPACTED)
        log.close()
        disk.open(name(4)).truncate(118)
        disk.remove(name(6))
        for clean in (True, False):
            again = open_log(disk.kill(), COMPACTED, clean=clean, recovery_point=6)
            assert values_of(again) == letters(5)
            assert (again.end_offset, append(again, batch(b"next")).base_offset) == (6, 6)
            assert read_all(again)[-1] == (6, b"next")

    def test_zeros_at_the_end_are_cut(self, disk: SimDisk) -> None:
        written(disk)
        file = disk.open(name(6))
        file.truncate(10_000)
        assert values_of(open_log(disk, SMALL_SEGMENTS, recovery_point=6)) == letters(8)
        assert disk.file_size(name(6)) == 236

    def test_remains_of_an_overwritten_log_are_not_taken_for_its_continuation(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, *letters(4), leader_epoch=3)
        old = disk.read_file(name(0))
        log.truncate_to(2)
        append_values(log, b"x" * 50, leader_epoch=4)
        disk.open(name(0)).pwritev([old[354:]], 354)
        assert values_of(open_log(disk)) == [*letters(2), b"x" * 50]

    def test_producers_come_from_the_newest_snapshot_and_what_follows_it(self, disk: SimDisk) -> None:
        written(disk, 7)
        for damaged in (6, 4, 2):
            file = disk.open(name(damaged, ".snapshot"))
            file.truncate(7)
            (producer,) = open_log(disk, SMALL_SEGMENTS, recovery_point=6).producers()
            assert (producer.last_sequence, producer.last_offset) == (6, 6)

    def test_snapshots_beyond_the_end_are_removed(self, disk: SimDisk) -> None:
        log = written(disk, 8)
        log.close()
        assert disk.exists(name(8, ".snapshot"))
        disk.open(name(6)).truncate(118)
        again = open_log(disk, SMALL_SEGMENTS, recovery_point=6)
        assert not disk.exists(name(8, ".snapshot"))
        (producer,) = again.producers()
        assert producer.last_sequence == 6

    def test_an_epoch_without_records_is_forgotten(self, disk: SimDisk) -> None:
        log = written(disk, 4)
        log.assign_epoch(9)
        log.flush()
        assert read_epochs(disk, FOLDER).entries[-1] == (9, 4)
        assert open_log(disk, SMALL_SEGMENTS, recovery_point=4).epochs.entries == [(0, 0), (1, 3)]

    def test_a_log_that_ends_before_its_start_is_empty_at_its_start(self, disk: SimDisk) -> None:
        written(disk, 8)
        again = open_log(disk, SMALL_SEGMENTS, log_start_offset=20)
        assert (again.start_offset, again.end_offset, again.producers()) == (20, 20, [])
        assert append_values(again, b"x", leader_epoch=9).base_offset == 20
        assert read_all(again) == [(20, b"x")]
        assert [entry for entry in disk.list_dir(FOLDER) if entry.endswith(".log")] == ["00000000000000000020.log"]

    def test_segments_before_the_start_are_removed(self, disk: SimDisk) -> None:
        written(disk, 8)
        again = open_log(disk, SMALL_SEGMENTS, log_start_offset=5)
        assert again.start_offset == 5
        assert [offset for offset, _ in read_all(again)] == [5, 6, 7]
        assert not disk.exists(name(2))

    @pytest.mark.parametrize("gone", [0, 2, 4])
    def test_a_hole_in_what_was_being_deleted_costs_nothing_of_what_was_not(self, disk: SimDisk, gone: int) -> None:
        log = written(disk, 10)
        kept = read_all(log)[6:]
        disk.remove(name(gone))
        again = open_log(disk, SMALL_SEGMENTS, log_start_offset=6)
        assert (again.start_offset, len(again.segments), read_all(again)) == (6, 2, kept)

    def test_a_log_starts_with_its_first_segment_if_that_is_later(self, disk: SimDisk) -> None:
        log = open_log(disk, log_start_offset=100)
        append_values(log, b"a")
        assert open_log(disk).start_offset == 100


class TestFolders:
    def test_an_empty_folder_is_an_empty_log(self, disk: SimDisk) -> None:
        log = open_log(disk, clean=True, log_start_offset=7)
        assert (log.start_offset, log.end_offset, log.size_bytes, values_of(log)) == (7, 7, 0, [])

    def test_foreign_files_are_not_touched(self, disk: SimDisk) -> None:
        strangers = ["00000000000000000000-0000000000.checkpoint", "quorum-state", "partition.metadata", "notes.txt"]
        for stranger in strangers:
            disk.open(f"{FOLDER}/{stranger}", create=True).pwritev([b"content"], 0)
        written(disk, 3).close()
        open_log(disk, SMALL_SEGMENTS, clean=True)
        open_log(disk, SMALL_SEGMENTS)
        for stranger in strangers:
            assert disk.read_file(f"{FOLDER}/{stranger}") == b"content"

    def test_indexes_without_a_log_are_removed(self, disk: SimDisk) -> None:
        written(disk, 3).close()
        for suffix in (".index", ".timeindex", ".txnindex"):
            disk.open(name(700, suffix), create=True)
        open_log(disk, SMALL_SEGMENTS, clean=True)
        assert not any(entry.startswith(f"{700:020d}") for entry in disk.list_dir(FOLDER))

    def test_a_log_written_by_a_follower_opens_with_its_gaps(self, disk: SimDisk) -> None:
        log = open_log(disk, COMPACTED)
        for offset in (3, 10, 11, 50):
            replicate(log, batch(b"v" * 50, base_offset=offset, leader_epoch=1))
        assert [offset for offset, _ in read_all(open_log(disk, COMPACTED))] == [3, 10, 11, 50]


@pytest.mark.parametrize(
    ("cut", "flip", "is_loss"),
    [(0, None, False), (1, None, False), (60, None, False), (0, -1, True), (0, -70, True)],
    ids=["intact", "unfinished", "header only", "last batch damaged", "batch before it damaged"],
)
def test_the_owner_is_notified_before_written_records_are_cut_off(
    disk: SimDisk, cut: int, flip: int | None, is_loss: bool
) -> None:
    log = written(disk, 1, LogConfig())
    append_values(log, b"another")
    log.close_files()
    file = disk.open(name(0))
    size = file.size()
    if cut:
        file.truncate(size - cut)
    if flip is not None:
        at = size + flip
        file.pwritev([bytes([file.pread(1, at)[0] ^ 1])], at)
    sizes: list[int] = []
    open_log(disk, LogConfig(), before_loss=lambda: sizes.append(disk.file_size(name(0))))
    assert sizes == ([size] if is_loss else [])


def test_the_owner_is_notified_of_a_missing_segment(disk: SimDisk) -> None:
    written(disk).close_files()
    disk.remove(name(2))
    told: list[bool] = []
    open_log(disk, SMALL_SEGMENTS, before_loss=lambda: told.append(disk.exists(name(4))))
    assert told == [True]
