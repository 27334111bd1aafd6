from collections.abc import Callable, Iterator

import pytest

from quire.protocol.records.batch import BatchHeader
from quire.seams import File
from quire.storage.scanning import batch_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from simulator.disk import SimDisk, SimFile
from tests.storage.batches import batch

Scan = Callable[[File, int, int], Iterator[tuple[int, BatchHeader]]]


def file_of(disk: SimDisk, *batches: bytes | bytearray) -> SimFile:
    file = disk.open("data/00000000000000000000.log", create=True)
    file.truncate(0)
    file.pwritev(batches, 0)
    return file


BATCHES = [batch(bytes(size), base_offset=at) for at, size in enumerate((10, 9000, 100, 3_000_000, 5, 2_000_000, 7))]


@pytest.mark.parametrize("scan", [batch_scan.headers, batch_scan.checked])
def test_batches_of_all_sizes_are_found(disk: SimDisk, scan: Scan) -> None:
    file = file_of(disk, *BATCHES)
    found = list(scan(file, 0, file.size()))
    assert [header.base_offset for _, header in found] == list(range(len(BATCHES)))
    positions = [position for position, _ in found]
    assert positions == [sum(map(len, BATCHES[:at])) for at in range(len(BATCHES))]


def test_scanning_begins_and_ends_as_requested(disk: SimDisk) -> None:
    file = file_of(disk, *BATCHES)
    start, end = len(BATCHES[0]), sum(map(len, BATCHES[:3]))
    assert [header.base_offset for _, header in batch_scan.headers(file, start, end)] == [1, 2]
    assert list(batch_scan.headers(file, end, end)) == []


def test_a_checksum_that_does_not_match_is_found_where_every_byte_is_read(disk: SimDisk) -> None:
    damaged = bytearray(BATCHES[1])
    damaged[5000] ^= 1
    file = file_of(disk, BATCHES[0], damaged, BATCHES[2])
    assert len(list(batch_scan.headers(file, 0, file.size()))) == 3
    scan = batch_scan.checked(file, 0, file.size())
    assert next(scan)[1].base_offset == 0
    with pytest.raises(DamagedBatchError, match="checksum") as caught:
        next(scan)
    assert caught.value.position == len(BATCHES[0])


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [
        (8, (2**31 - 1).to_bytes(4, "big"), "of a batch of"),
        (8, (48).to_bytes(4, "big"), "length"),
        (8, (-1).to_bytes(4, "big", signed=True), "length"),
        (16, b"\x01", "magic 1"),
        (0, b"\x80", "negative"),
        (23, b"\xff\xff\xff\xff", "negative"),
    ],
)
@pytest.mark.parametrize("scan", [batch_scan.headers, batch_scan.checked])
def test_bytes_that_cannot_be_a_header_end_the_scan(
    disk: SimDisk, scan: Scan, position: int, value: bytes, reason: str
) -> None:
    damaged = batch(base_offset=1)
    damaged[position : position + len(value)] = value
    file = file_of(disk, BATCHES[0], damaged, BATCHES[2])
    with pytest.raises(DamagedBatchError, match=reason) as caught:
        list(scan(file, 0, file.size()))
    assert caught.value.position == len(BATCHES[0])


@pytest.mark.parametrize("scan", [batch_scan.headers, batch_scan.checked])
def test_zeros_are_no_batches(disk: SimDisk, scan: Scan) -> None:
    file = file_of(disk, BATCHES[0], bytes(4096))
    with pytest.raises(DamagedBatchError) as caught:
        list(scan(file, 0, file.size()))
    assert caught.value.position == len(BATCHES[0])


def test_read_batch_returns_the_bytes_only_if_they_are_intact(disk: SimDisk) -> None:
    file = file_of(disk, *BATCHES)
    position, header = list(batch_scan.headers(file, 0, file.size()))[2]
    assert batch_scan.read_batch(file, position, header) == BATCHES[2]
    file.pwritev([b"\x77"], position + header.size - 1)
    with pytest.raises(DamagedBatchError):
        batch_scan.read_batch(file, position, header)
