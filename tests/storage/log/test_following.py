"""A follower's log: appending the leader's batches, truncating, starting over."""

import errno

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records.batch import walk_batches
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


class TestAppendingAsFollower:
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

    @pytest.mark.parametrize(("held", "kind"), [(1, "write"), (4, "create")], ids=["write", "new segment"])
    def test_batches_that_could_not_be_written_leave_no_epochs(self, disk: SimDisk, held: int, kind: str) -> None:
        """The follower would report the newest epoch to its leader, and then refuse the batches of the earlier ones."""
        log = open_log(disk, SMALL_SEGMENTS)
        for offset in range(held):
            replicate(log, batch(b"a", base_offset=offset, leader_epoch=3))
        batches = [batch(b"b", base_offset=held + number, leader_epoch=4 + number) for number in range(3)]
        disk.fail_when(lambda call: call.kind == kind, errno.ENOSPC)
        with pytest.raises(OSError, match="No space left"):
            replicate(log, *batches)
        assert (log.end_offset, log.epochs.entries, log.epochs.latest) == (held, [(3, 0)], 3)
        for each in batches:
            replicate(log, each)
        assert log.epochs.entries == [(3, 0), (4, held), (5, held + 1), (6, held + 2)]


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
    def test_an_index_that_was_cut_short_is_rebuilt_at_start(self, disk: SimDisk, suffix: str) -> None:
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

    @pytest.mark.parametrize("offset", [2, 3])
    def test_an_epoch_without_records_is_dropped_even_if_no_record_is(self, disk: SimDisk, offset: int) -> None:
        log = open_log(disk)
        append_values(log, b"a", b"b", leader_epoch=1)
        log.assign_epoch(5)
        log.truncate_to(offset)
        assert (log.end_offset, log.epochs.entries, log.epochs.latest) == (2, [(1, 0)], 1)
        replicate(log, batch(b"c", base_offset=2, leader_epoch=4))
        assert log.epochs.epoch_of(2) == 4

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
