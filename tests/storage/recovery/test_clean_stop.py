"""Opening a log after a clean stop: nothing is scanned, and damage at its end is still found."""

import logging

import pytest

from quire.storage.leader_epochs import read_epochs
from quire.storage.log_config import LogConfig
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.storage.batches import (
    FOLDER,
    SMALL_SEGMENTS,
    append,
    append_values,
    batch,
    letters,
    open_log,
    values_of,
)
from tests.storage.recovery.filled_log import damage, name, state_of, watch_reads, written


class TestCleanly:
    def test_everything_is_as_it_was(self, disk: SimDisk) -> None:
        log = written(disk)
        before = state_of(log)
        log.close()
        again = open_log(disk, SMALL_SEGMENTS, clean=True)
        assert state_of(again) == before
        assert again.recovery_point == 8
        assert append_values(again, b"x", leader_epoch=2).base_offset == 8

    def test_only_the_end_of_the_last_segment_is_read(self, disk: SimDisk) -> None:
        log = open_log(disk, LogConfig(segment_bytes=1 << 20))
        value = bytes(1000)
        for _ in range(1500):
            append(log, batch(value))
        log.close()
        reads = watch_reads(disk)
        assert open_log(disk, clean=True).end_offset == 1500
        assert sum(read.size for read in reads if read.path.endswith(".log")) <= 3 * 8192

    def test_opening_and_closing_an_idle_log_writes_nothing(self, disk: SimDisk) -> None:
        written(disk).close()
        for _ in range(3):
            before = disk.operations
            open_log(disk, SMALL_SEGMENTS, clean=True, recovery_point=8).close()
            assert disk.operations == before

    def test_a_log_without_records_is_not_even_opened(self, disk: SimDisk) -> None:
        open_log(disk, SMALL_SEGMENTS).close()
        assert disk.list_dir(FOLDER) == [f"{0:020d}.index", f"{0:020d}.log", f"{0:020d}.timeindex"], "as Kafka has it"
        operations, reads = disk.operations, watch_reads(disk)
        log = open_log(disk, SMALL_SEGMENTS, clean=True)
        log.close()
        assert (disk.operations, reads) == (operations, [])
        assert append_values(log, b"a").base_offset == 0

    def test_no_file_stays_open(self, disk: SimDisk) -> None:
        written(disk).close()
        open_log(disk, SMALL_SEGMENTS, clean=True)
        assert disk.open_paths() == []

    def test_a_log_without_producers_leaves_no_snapshot(self, disk: SimDisk) -> None:
        log = open_log(disk)
        append_values(log, b"a")
        log.close()
        assert disk.list_dir(FOLDER) == [
            "00000000000000000000.index",
            "00000000000000000000.log",
            "00000000000000000000.timeindex",
            "leader-epoch-checkpoint",
        ]

    def test_a_damaged_end_is_noticed_and_cut(self, disk: SimDisk, caplog: pytest.LogCaptureFixture) -> None:
        written(disk).close()
        file = disk.open(name(6))
        file.pwritev([bytes(100)], file.size())
        with caplog.at_level(logging.WARNING):
            again = open_log(disk, SMALL_SEGMENTS, clean=True, recovery_point=8)
        assert values_of(again) == letters(8)
        assert "stopped cleanly but is damaged" in caplog.text
        assert "cut 100 bytes" in caplog.text

    @pytest.mark.parametrize("suffix", [".index", ".timeindex"])
    @pytest.mark.parametrize("base", [0, 2, 6])
    @pytest.mark.parametrize("clean", [True, False])
    def test_a_missing_index_is_rebuilt(self, disk: SimDisk, base: int, suffix: str, clean: bool) -> None:
        log = written(disk)
        before = state_of(log)
        log.close()
        right = disk.read_file(name(base, suffix))
        disk.remove(name(base, suffix))
        again = open_log(disk, SMALL_SEGMENTS, clean=clean, recovery_point=8)
        assert base == 6 or disk.read_file(name(base, suffix)) == right, "at once, not when it is first needed"
        assert state_of(again) == before
        again.close()
        disk = disk.crash(SimRandom(1))
        assert disk.read_file(name(base, suffix)) == right

    def test_epochs_are_found_in_the_log_when_their_file_is_missing(self, disk: SimDisk) -> None:
        log = written(disk)
        before = state_of(log)
        log.close()
        for content in (None, b"0\n2\nnonsense\n"):
            disk.remove(f"{FOLDER}/leader-epoch-checkpoint")
            if content is not None:
                disk.open(f"{FOLDER}/leader-epoch-checkpoint", create=True).pwritev([content], 0)
            again = open_log(disk, SMALL_SEGMENTS, clean=True)
            assert state_of(again) == before
            again.close()
            assert read_epochs(disk, FOLDER).entries == before[2], "it is back"


class TestWhatWasCut:
    """It must not reappear if a power loss follows a clean stop, because the next start does not look for damage."""

    @pytest.mark.parametrize("seed", range(10))
    def test_a_torn_tail_stays_away(self, disk: SimDisk, seed: int) -> None:
        log = open_log(disk)
        append_values(log, b"a", b"b")
        log.flush()
        damage(disk, name(0), disk.file_size(name(0)) - 1)
        assert values_after_a_clean_stop_and_a_power_cut(disk, LogConfig(), seed) == [b"a"]

    @pytest.mark.parametrize("seed", range(10))
    def test_segments_after_the_damage_stay_away(self, disk: SimDisk, seed: int) -> None:
        written(disk).flush()
        damage(disk, name(2), 100)
        values = values_after_a_clean_stop_and_a_power_cut(disk, SMALL_SEGMENTS, seed)
        assert values == letters(len(values))
        assert 2 <= len(values) < 4


def values_after_a_clean_stop_and_a_power_cut(disk: SimDisk, config: LogConfig, seed: int) -> list[bytes]:
    """For a log that was opened after a crash, and found damaged, before that stop."""
    open_log(disk, config).close()
    return values_of(open_log(disk.crash(SimRandom(seed)), config, clean=True))


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_that_has_lost_its_last_file_says_so(
    disk: SimDisk, caplog: pytest.LogCaptureFixture, clean: bool
) -> None:
    log = written(disk)
    log.close()
    disk.remove(name(6))
    opened = open_log(disk, SMALL_SEGMENTS, clean=clean, recovery_point=8)
    assert opened.end_offset == 6
    assert "ends at 6, though everything before 8 was on disk" in caplog.text
    caplog.clear()
    opened.close()
    open_log(disk, SMALL_SEGMENTS, clean=clean, recovery_point=6)
    assert caplog.text == ""


def test_stops_and_starts_do_not_pile_up_snapshots_of_producers(disk: SimDisk) -> None:
    config = LogConfig(segment_bytes=300)
    log = open_log(disk, config)
    for sequence in range(9):
        append(log, batch(bytes(20), producer_id=5, producer_epoch=0, sequence=sequence))
        log.close()
        log = open_log(disk, config, clean=True)
    bases = [segment.base_offset for segment in log.segments]
    snapshots = [int(name[:20]) for name in disk.list_dir(FOLDER) if name.endswith(".snapshot")]
    assert snapshots == sorted({*bases[1:], log.end_offset}), "one for each segment, and the newest"
    (producer,) = log.producers()
    assert producer.last_sequence == 8
