"""Slices that end within a batch."""

import pytest

from quire.node.replicas.whole_batches import BATCHES_MAX, without_cut_batch
from quire.protocol.records import Record, build_batch
from quire.seams import FileSlice
from simulator.disk import SimDisk

BATCH = bytes(build_batch([Record(0, 1, None, b"value")]))
PREFIX = b"what comes before"


def sliced(batches: int, size: int) -> int:
    """What remains of a slice of that size."""
    disk = SimDisk()
    file = disk.open("/file", create=True)
    file.pwritev([PREFIX + BATCH * batches], 0)
    part = without_cut_batch(FileSlice(file, len(PREFIX), size))
    assert part.position == len(PREFIX)
    return part.size


@pytest.mark.parametrize("cut", [1, 11, len(BATCH) - 1])
def test_a_batch_that_is_cut_off_is_left_out(cut: int) -> None:
    assert sliced(4, 2 * len(BATCH) + cut) == 2 * len(BATCH)


@pytest.mark.parametrize("whole", [1, 2, 3])
def test_whole_batches_remain(whole: int) -> None:
    assert sliced(3, whole * len(BATCH)) == whole * len(BATCH)


def test_a_slice_of_many_batches_remains_as_it_is() -> None:
    size = BATCHES_MAX * len(BATCH) + 1
    assert sliced(2 * BATCHES_MAX, size) == size - 1
    assert sliced(2 * BATCHES_MAX, size + len(BATCH)) == size + len(BATCH)
