"""A reserve of disk space: made when twice as much is free, released once, and made again."""

import errno

import pytest

from quire.protocol.errors import ApiError
from quire.storage.directory.reserve import FILE_NAME, NO_RESERVE, Reserve
from quire.storage.directory.reserving_disk import ReservingDisk
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.storage.batches import append_values, open_log, values_of

FOLDER = "data"
PATH = f"{FOLDER}/{FILE_NAME}"
SIZE = 600_000


@pytest.fixture
def disk() -> SimDisk:
    disk = SimDisk()
    disk.make_dirs(FOLDER)
    return disk


def reserve_on(disk: SimDisk, size_bytes: int = SIZE) -> Reserve:
    return Reserve(disk, SimRandom(1), FOLDER, size_bytes)


def test_it_takes_the_room_it_should(disk: SimDisk) -> None:
    reserve = reserve_on(disk)
    assert reserve.is_missing
    assert reserve.set_aside()
    assert not reserve.is_missing
    assert disk.file_size(PATH) == SIZE
    assert not reserve_on(disk).is_missing, "the next start finds it"


def test_it_is_not_made_of_the_last_room(disk: SimDisk) -> None:
    disk.capacity_bytes = 2 * SIZE - 1
    reserve = reserve_on(disk)
    assert not reserve.set_aside()
    assert not disk.exists(PATH)
    disk.capacity_bytes = 2 * SIZE
    assert reserve.set_aside()


def test_a_part_of_it_is_removed_when_another_was_faster(disk: SimDisk) -> None:
    disk.fail_when(lambda operation: operation.kind == "write", errno.ENOSPC)
    assert not reserve_on(disk).set_aside()
    assert not disk.exists(PATH)


def test_it_is_given_up_once(disk: SimDisk) -> None:
    reserve = reserve_on(disk)
    reserve.set_aside()
    assert reserve.release()
    assert not disk.exists(PATH)
    assert reserve.is_missing
    assert not reserve.release()


def test_a_reserve_that_was_removed_by_hand_gives_no_room(disk: SimDisk) -> None:
    reserve = reserve_on(disk)
    reserve.set_aside()
    disk.remove(PATH)
    assert not reserve.release()
    assert reserve.is_missing


def test_a_reserve_of_size_zero_does_not_exist_and_is_not_missing(disk: SimDisk) -> None:
    for reserve in (reserve_on(disk, 0), NO_RESERVE):
        assert not reserve.is_missing
        assert reserve.set_aside()
        assert not reserve.release()
    assert not disk.exists(PATH)


def test_a_disk_gives_it_up_rather_than_have_no_room(disk: SimDisk) -> None:
    reserve = reserve_on(disk)
    reserve.set_aside()
    disk.capacity_bytes = SIZE
    file = ReservingDisk(disk, reserve).open(f"{FOLDER}/f", create=True)
    assert file.pwritev([b"x" * SIZE], 0) == SIZE
    assert file.pread(SIZE, 0) == b"x" * SIZE
    assert reserve.is_missing
    with pytest.raises(OSError, match="No space left"):
        file.pwritev([b"x"], SIZE)


def test_other_errors_leave_it_alone(disk: SimDisk) -> None:
    reserve = reserve_on(disk)
    reserve.set_aside()
    disk.fail_when(lambda operation: operation.kind == "create", errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        ReservingDisk(disk, reserve).open(f"{FOLDER}/f", create=True)
    assert not reserve.is_missing


def test_a_log_leaves_the_room_there_is_to_the_metadata(disk: SimDisk) -> None:
    log = open_log(disk)
    log.reserve = reserve_on(disk)
    log.reserve.set_aside()
    append_values(log, b"a")
    disk.capacity_bytes = 2 * SIZE
    log.reserve.release()
    with pytest.raises((OSError, ApiError), match="except for metadata"):
        append_values(log, b"b")
    disk.capacity_bytes = None
    append_values(log, b"c")
    assert values_of(log) == [b"a", b"c"]
    assert not log.reserve.is_missing
