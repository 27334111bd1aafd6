"""What follows a damaged batch: nothing, the remains of a crash, or records that were durable."""

import pytest

from quire.storage.scanning import damage
from quire.storage.scanning.damage import SECTOR, find_intact, is_hole
from simulator.disk import SimDisk, SimFile
from tests.storage.batches import batch


def file_of(content: bytes | bytearray) -> SimFile:
    file = SimDisk().open("log", create=True)
    file.pwritev([content], 0)
    return file


@pytest.mark.parametrize("chunk", [1, 7, 100, 1 << 20])
def test_an_intact_batch_is_found_at_any_byte(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(damage, "_CHUNK", chunk)
    rubbish = b"\2" * 150
    content = rubbish + batch(b"a", base_offset=5) + batch(b"b", base_offset=6)
    file = file_of(content)
    assert find_intact(file, 0, len(content), 5) == 150
    assert find_intact(file, 150, len(content), 5) == 150
    assert find_intact(file, 151, len(content), 5) == 150 + len(batch(b"a"))


def test_a_batch_that_is_cut_off_or_damaged_or_too_old_is_none() -> None:
    content = batch(b"a", base_offset=5)
    assert find_intact(file_of(content[:-1]), 0, len(content) - 1, 0) is None
    assert find_intact(file_of(content), 0, len(content) - 1, 0) is None
    assert find_intact(file_of(content), 0, len(content), 6) is None
    content[-1] ^= 1
    assert find_intact(file_of(content), 0, len(content), 0) is None
    assert find_intact(file_of(bytes(5000)), 0, 5000, 0) is None


def test_zeros_to_a_sectors_end_are_a_hole() -> None:
    content = bytearray(b"x" * 4 * SECTOR)
    assert not is_hole(file_of(content), 100, len(content), 7)
    content[SECTOR + 1 : 2 * SECTOR] = bytes(SECTOR - 1)
    assert not is_hole(file_of(content), 100, len(content), 7)
    assert is_hole(file_of(content), SECTOR + 1, len(content), 7)
    content[SECTOR] = 0
    assert is_hole(file_of(content), 100, len(content), 7)


@pytest.mark.parametrize(("size", "offset", "hole"), [(3, 7, False), (8, 7, True), (11, 0, False), (12, 0, True)])
def test_zeros_that_would_be_there_anyway_are_no_hole(size: int, offset: int, hole: bool) -> None:
    content = bytearray(b"x" * 2 * SECTOR)
    position = SECTOR - size
    content[position:SECTOR] = bytes(size)
    assert is_hole(file_of(content), position, len(content), offset) == hole


@pytest.mark.parametrize(("zeros", "hole"), [(0, True), (1, True), (7, True), (8, False)])
def test_a_hole_may_reach_into_the_zeros_that_the_next_batch_begins_with(zeros: int, hole: bool) -> None:
    content = bytearray(b"x" * 3 * SECTOR)
    end = 2 * SECTOR - zeros
    content[SECTOR + 100 : end] = bytes(end - SECTOR - 100)
    following = batch(b"b", base_offset=1)
    content[end : end + len(following)] = following
    assert is_hole(file_of(content), SECTOR + 100, end, 7) == hole
