"""Damage in existing files is never served and reported once; records around it are served."""

import logging

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.records.batch import walk_batches
from quire.seams.disk import write_atomically
from quire.storage.leader_epochs import LeaderEpochs, epochs_path
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.range_check import AHEAD_BYTES, NotCheckedError, read_checked
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, append, append_values, batch, open_log, read, read_all, replicate, values_of

CONFIG = LogConfig(segment_bytes=1200, index_interval_bytes=200)
VALUES = [bytes([65 + at]) * 50 for at in range(20)]
SIZE = len(batch(VALUES[0]))


def name(offset: int, suffix: str = ".log") -> str:
    return f"{FOLDER}/{offset:020d}{suffix}"


def closed(disk: SimDisk, config: LogConfig = CONFIG) -> None:
    """Ten batches to a segment."""
    log = open_log(disk, config)
    append_values(log, *VALUES)
    log.close()


def reopened(disk: SimDisk, config: LogConfig = CONFIG) -> Log:
    return open_log(disk, config, clean=True)


def flip(disk: SimDisk, path: str, position: int, bit: int = 1) -> None:
    file = disk.open(path)
    file.pwritev([bytes([file.pread(1, position)[0] ^ bit])], position)
    file.close()


def refusal(log: Log, offset: int) -> DamagedBatchError:
    with pytest.raises(DamagedBatchError) as caught:
        read(log, offset)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    return caught.value


def offsets_of(log: Log, offset: int) -> list[int]:
    part = read(log, offset)
    assert part is not None
    return [header.base_offset for header in walk_batches(part.read())]


class TestWhatHasToBeChecked:
    def test_records_that_this_process_wrote_are_served_at_once(self, disk: SimDisk) -> None:
        log = open_log(disk, CONFIG)
        append_values(log, *VALUES)
        for offset in range(20):
            assert log.read(offset, 1) is not None

    def test_scanned_records_are_served_at_once_and_others_are_checked(self, disk: SimDisk) -> None:
        closed(disk)
        log = open_log(disk, CONFIG, recovery_point=15)
        second = [segment for segment in disk.list_dir(FOLDER) if segment.endswith(".log")][1]
        scanned_from = int(second[:20])
        for offset in range(scanned_from, 20):
            assert log.read(offset, 1) is not None
        with pytest.raises(NotCheckedError):
            log.read(0, 1)

    def test_after_a_clean_stop_everything_is_checked_once(self, disk: SimDisk) -> None:
        closed(disk)
        log = reopened(disk)
        with pytest.raises(NotCheckedError) as caught:
            log.read(0, 1)
        caught.value.check.run()
        with pytest.raises(NotCheckedError):
            log.read(0, 1)
        caught.value.check.finish()
        assert log.read(0, 1) is not None
        assert log.read(5, 1 << 20) is not None, "some way ahead as well"
        assert values_of(log) == VALUES
        assert log.read(0, 1) is not None

    def test_records_appended_to_a_segment_from_disk_need_no_check(self, disk: SimDisk) -> None:
        closed(disk, LogConfig())
        log = reopened(disk, LogConfig())
        append(log, batch(b"new"))
        part = log.read(20, 1 << 20)
        assert part is not None and part.read() == batch(b"new", base_offset=20, leader_epoch=0)
        assert offsets_of(log, 19) == [19, 20]

    def test_a_range_is_checked_from_the_batch_on_that_was_asked_for_and_not_to_the_end(self, disk: SimDisk) -> None:
        config = LogConfig(segment_bytes=1 << 30, index_interval_bytes=1 << 16)
        log = open_log(disk, config)
        value = bytes(1 << 18)
        for _ in range(40):
            append(log, batch(value))
        log.close()
        log = reopened(disk, config)
        part = read(log, 4, 1 << 20)
        assert part is not None
        assert log.read(5, 1) is not None
        for offset in (3, 39):
            with pytest.raises(NotCheckedError):
                log.read(offset, 1)
        ahead = log.read(4, 1 << 30)
        assert ahead is not None and AHEAD_BYTES <= ahead.size < AHEAD_BYTES + (1 << 20)

    def test_truncation_and_what_is_written_behind_it_need_no_check(self, disk: SimDisk) -> None:
        closed(disk)
        log = reopened(disk)
        assert len(read_all(log, 12)) == 8
        with pytest.raises(NotCheckedError) as caught:
            log.read(10, 1)
        caught.value.check.run()
        log.truncate_to(15)
        append(log, batch(b"new"))
        caught.value.check.finish()
        assert offsets_of(log, 10) == [10, 11, 12, 13, 14, 15]
        assert values_of(log) == [*VALUES[:15], b"new"]

    def test_deleting_a_segment_during_its_check_is_not_a_failure(self, disk: SimDisk) -> None:
        closed(disk)
        log = reopened(disk)
        with pytest.raises(NotCheckedError) as caught:
            log.read(0, 1)
        log.delete_records_before(12)
        with pytest.raises(OSError):
            caught.value.check.run()
        assert values_of(log) == VALUES[12:]

    def test_offsets_removed_by_compaction_are_not_damage(self, disk: SimDisk) -> None:
        config = LogConfig(compact=True)
        log = open_log(disk, config)
        for offset in (0, 1, 2, 10, 11, 12):
            replicate(log, batch(b"x" * 50, base_offset=offset, leader_epoch=0))
        log.close()
        for offset in range(3, 11):
            assert offsets_of(reopened(disk, config), offset) == [10, 11, 12]


class TestDamage:
    @pytest.mark.parametrize("at", [4, 9, 16, 18, 25, 70, SIZE - 1])
    def test_it_is_found_when_read_and_not_served(
        self, disk: SimDisk, caplog: pytest.LogCaptureFixture, at: int
    ) -> None:
        closed(disk)
        flip(disk, name(0), 3 * SIZE + at)
        log = reopened(disk)
        with caplog.at_level(logging.ERROR):
            assert offsets_of(log, 0) == [0, 1, 2], "what comes before it is served"
            refused = refusal(log, 3)
            assert refused.position == 3 * SIZE
            refusal(log, 3)
        (line,) = [record.getMessage() for record in caplog.records]
        assert f"{name(0)} at position {3 * SIZE}" in line, "said once, with file and position"
        assert [value for _, value in read_all(log, 6)] == VALUES[6:], "what the index leads to is served"
        assert offsets_of(log, 0) == [0, 1, 2]

    def test_the_report_names_the_offset(self, disk: SimDisk, caplog: pytest.LogCaptureFixture) -> None:
        closed(disk)
        flip(disk, name(0), 3 * SIZE + 80)
        log = reopened(disk)
        with caplog.at_level(logging.ERROR):
            offsets_of(log, 0)
        assert "at offset 3" in caplog.text

    @pytest.mark.parametrize("bit", [1, 2, 4])
    def test_a_wrong_offset_is_damage_though_no_checksum_covers_it(self, disk: SimDisk, bit: int) -> None:
        closed(disk)
        flip(disk, name(0), 4 * SIZE + 7, bit)
        log = reopened(disk)
        served = offsets_of(log, 0)
        assert served == [0, 1, 2, 3]

    @pytest.mark.parametrize("slot", range(10))
    @pytest.mark.parametrize("at", [*range(8), *range(12, 16)])
    @pytest.mark.parametrize("compact", [False, True])
    def test_a_wrong_offset_or_epoch_in_any_batch_is_refused_for_every_requested_offset(
        self, disk: SimDisk, slot: int, at: int, compact: bool
    ) -> None:
        config = LogConfig(segment_bytes=1200, index_interval_bytes=200, compact=compact)
        log = open_log(disk, config)
        for number, value in enumerate(VALUES):
            append(log, batch(value), leader_epoch=5 + number // 7)
        log.close()
        written = {name(base): disk.read_file(name(base)) for base in (0, 10)}
        for bit in (1, 2, 4, 8):
            flip(disk, name(0), slot * SIZE + at, bit)
            log = reopened(disk, config)
            for offset in (*range(20), *range(slot)):
                try:
                    part = read(log, offset)
                except DamagedBatchError:
                    assert offset >= slot, "what comes before it is served"
                    continue
                assert part is not None
                assert part.read() == written[part.file.path][part.position : part.position + part.size]
                assert not part.position <= slot * SIZE < part.position + part.size or part.file.path != name(0)
            log.close_files()
            flip(disk, name(0), slot * SIZE + at, bit)

    def test_a_reader_of_a_damaged_batch_is_not_sent_past_it(self, disk: SimDisk) -> None:
        closed(disk)
        flip(disk, name(0), 7 * SIZE + 7, 4)
        for offset in (7, 8):
            log = reopened(disk)
            if offset == 8:
                assert offsets_of(log, 8) == [8, 9]
            assert refusal(log, 7).position == 7 * SIZE
            assert offsets_of(log, 8) == [8, 9]
            log.close_files()

    def test_an_epochs_file_that_is_wrong_costs_nothing(self, disk: SimDisk) -> None:
        log = open_log(disk, CONFIG)
        for number, value in enumerate(VALUES):
            append(log, batch(value), leader_epoch=number // 7)
        log.close()
        for entries in ([(0, 0), (1, 9), (2, 14)], [(0, 0), (2, 14)], [(1, 0), (3, 5)], [(0, 0)]):
            write_atomically(disk, epochs_path(FOLDER), LeaderEpochs(entries).to_bytes())
            log = reopened(disk)
            assert values_of(log) == VALUES
            log.close_files()

    def test_gaps_are_no_damage(self, disk: SimDisk) -> None:
        log = open_log(disk, CONFIG)
        for offset in (0, 1, 4, 9, 10):
            data = batch(VALUES[0], base_offset=offset, leader_epoch=0)
            log.append_as_follower(data, walk_batches(data), 0)
        log.close()
        for compact in (False, True):
            config = LogConfig(segment_bytes=1200, compact=compact)
            again = reopened(disk, config)
            assert [offset for offset, _ in read_all(again)] == [0, 1, 4, 9, 10]
            again.close_files()

    def test_looking_for_a_time_meets_it_alike(self, disk: SimDisk, caplog: pytest.LogCaptureFixture) -> None:
        log = open_log(disk, CONFIG)
        for at, value in enumerate(VALUES):
            append(log, batch(value, timestamp=1000 + at))
        log.close()
        flip(disk, name(0), 3 * SIZE + 80)
        log = reopened(disk)
        with caplog.at_level(logging.ERROR):
            for _ in range(2):
                with pytest.raises(DamagedBatchError):
                    log.find_timestamp(1003)
        assert len(caplog.records) == 1
        found = log.find_timestamp(1007)
        assert found is not None and found.offset == 7

    def test_a_rebuilt_index_leads_past_it(self, disk: SimDisk) -> None:
        closed(disk)
        flip(disk, name(0), 3 * SIZE + 16)
        disk.remove(name(0, ".index"))
        log = reopened(disk)
        assert offsets_of(log, 0) == [0, 1, 2]
        refusal(log, 3)
        assert [value for _, value in read_all(log, 4)] == VALUES[4:]


def test_read_checked_returns_what_the_read_returns(disk: SimDisk) -> None:
    closed(disk)
    log = reopened(disk)
    assert read_checked(lambda: log.read(20, 1)) is None
