"""`quire-move`: written completely or not at all."""

import itertools

import pytest

from quire.storage.directory.move_mark import FILE_NAME, MoveMark, MoveRole, read_mark, remove_mark, write_mark
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom

OTHER = bytes(range(16))


def test_a_mark_is_read_as_it_was_written_and_is_gone_when_it_is_removed() -> None:
    disk = SimDisk()
    disk.make_dirs("/t-0")
    assert read_mark(disk, "/t-0") is None
    for role in MoveRole:
        write_mark(disk, "/t-0", MoveMark(role, OTHER))
        assert read_mark(disk, "/t-0") == MoveMark(role, OTHER)
    remove_mark(disk, "/t-0")
    remove_mark(disk, "/t-0")
    assert disk.list_dir("/t-0") == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"version":1,"role":"copy","other":"00"}', b"\xff"])
def test_a_file_that_is_not_valid_is_no_mark(content: bytes) -> None:
    disk = SimDisk()
    disk.make_dirs("/t-0")
    disk.open(f"/t-0/{FILE_NAME}", create=True).pwritev([content], 0)
    assert read_mark(disk, "/t-0") is None


def test_a_crash_leaves_the_mark_before_or_the_new_one() -> None:
    first, second = MoveMark(MoveRole.COPY, OTHER), MoveMark(MoveRole.DECIDES, OTHER)
    for number in itertools.count(1):
        disk = SimDisk(SimRandom(number))
        disk.make_dirs("/t-0")
        disk.sync_dir("/")
        write_mark(disk, "/t-0", first)
        disk.calls.crash_at = disk.operations + number
        try:
            write_mark(disk, "/t-0", second)
        except Crashed:
            assert read_mark(disk.crash(SimRandom(number)), "/t-0") in (first, second)
        else:
            disk.calls.crash_at = None
            assert read_mark(disk.crash(SimRandom(number)), "/t-0") == second
            break
