"""Walking through the batches of a file, a buffer at a time, also if the file has changed."""

import pytest

from quire.protocol.records.batch import walk_batches
from quire.storage.cleaning.walk import Walk
from quire.storage.scanning.batch_scan import DamagedBatchError
from simulator.disk import SimDisk
from tests.storage.batches import batch

PATH = "data/00000000000000000000.log"


def take_whole(buffer: memoryview, filled: int) -> int:
    headers = walk_batches(bytes(buffer[:filled]))
    return headers[-1].end if headers else 0


def made_file(disk: SimDisk, *batches: bytearray) -> int:
    disk.make_dirs("data")
    content = b"".join(batches)
    file = disk.open(PATH, create=True)
    file.pwritev([content], 0)
    file.close()
    return len(content)


@pytest.mark.parametrize("buffer_bytes", [1, 61, 100, 1000])
def test_every_batch_is_taken_once_however_small_the_buffer_was(buffer_bytes: int) -> None:
    disk = SimDisk()
    size = made_file(disk, batch(b"a"), batch(bytes(500)), batch(b"c"))
    assert sum(Walk(disk, buffer_bytes).through(PATH, size, take_whole)) == size


@pytest.mark.parametrize("lost", [1, 70, 100, 200])
def test_a_file_that_has_become_shorter_is_damaged_and_not_waited_for(lost: int) -> None:
    disk = SimDisk()
    size = made_file(disk, batch(b"a"), batch(b"b"), batch(b"c"))
    file = disk.open(PATH)
    file.truncate(size - lost)
    file.close()
    with pytest.raises(DamagedBatchError):
        list(Walk(disk, 1000).through(PATH, size, take_whole))
