"""A growing file reserves blocks behind its end, and releases those that it did not need."""

import os
from pathlib import Path
from tempfile import TemporaryFile

import pytest

import quire.real.disk
from quire.real.disk import RealDisk
from quire.real.reserve_native import COMPILED, reserve
from quire.storage.log_config import LogConfig
from tests.storage.batches import append, batch, open_log

MB = 1 << 20
FILE_SYSTEM_SLACK = 64 * 1024
"""Blocks beyond the file's bytes: the end of its last block, and the file system's own metadata."""


class AlmostFull:
    f_bavail = 1024 * 256
    f_frsize = 4096


@pytest.fixture(autouse=True)
def _file_system_can_reserve(tmp_path: Path) -> None:
    if not COMPILED:
        pytest.skip("blocks are set aside by compiled code only, and there was no compiler at installation")
    number = os.open(tmp_path / "probe", os.O_RDWR | os.O_CREAT)
    try:
        if not reserve(number, 0, 4096):
            pytest.skip("this file system cannot set blocks aside")
    finally:
        os.close(number)


def set_aside(path: str) -> int:
    status = os.stat(path)
    behind = status.st_blocks * 512 - status.st_size
    return 0 if behind <= FILE_SYSTEM_SLACK else behind


def test_a_small_file_has_nothing_set_aside(tmp_path: Path) -> None:
    path = f"{tmp_path}/a"
    file = RealDisk().open(path, create=True)
    for position in range(8):
        file.pwritev([bytes(MB)], position * MB)
    assert set_aside(path) == 0


def test_from_eight_megabytes_on_an_eighth_is_reserved_without_changing_the_files_size(tmp_path: Path) -> None:
    path = f"{tmp_path}/a"
    file = RealDisk().open(path, create=True)
    for position in range(100):
        file.pwritev([bytes(MB - 1)], position * (MB - 1))
        assert file.size() == (position + 1) * (MB - 1)
        assert set_aside(path) <= file.size() // 8 + FILE_SYSTEM_SLACK
    assert set_aside(path) > 0


def test_no_more_than_four_megabytes_are_set_aside_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def note(number: int, position: int, size: int) -> bool:
        asked.append((position, size))
        return True

    monkeypatch.setattr(quire.real.disk, "reserve", note)
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    for position in range(1024, 1032):
        file.pwritev([b"x"], position * MB)
    assert asked == [(1024 * MB, 4 * MB), (1028 * MB, 4 * MB)]


def test_reserved_blocks_are_released_without_changing_the_files_age(tmp_path: Path) -> None:
    path = f"{tmp_path}/a"
    disk = RealDisk()
    file = disk.open(path, create=True)
    written = [os.urandom(MB - 7) for _ in range(12)]
    for number, piece in enumerate(written):
        file.pwritev([piece], number * (MB - 7))
    disk.set_modified_ms(path, 1_700_000_000_000)
    assert set_aside(path) > 0
    file.trim()
    assert set_aside(path) == 0
    assert disk.modified_ms(path) == 1_700_000_000_000
    assert file.pread(20 * MB, 0) == b"".join(written)


def test_releasing_blocks_removes_no_byte_that_another_process_wrote_behind(tmp_path: Path) -> None:
    path = f"{tmp_path}/a"
    disk = RealDisk()
    file = disk.open(path, create=True)
    file.pwritev([bytes(20 * MB)], 0)
    file.pwritev([b"x"], 20 * MB)
    disk.open(path).pwritev([b"y"], 20 * MB + 1)
    file.trim()
    assert file.pread(3, 20 * MB) == b"xy"
    assert set_aside(path) == 0


def test_a_file_that_was_cut_can_have_blocks_set_aside_again(tmp_path: Path) -> None:
    path = f"{tmp_path}/a"
    file = RealDisk().open(path, create=True)
    file.pwritev([bytes(20 * MB)], 0)
    file.pwritev([b"x"], 20 * MB)
    file.truncate(10 * MB)
    assert set_aside(path) == 0
    file.pwritev([b"x"], 10 * MB)
    assert set_aside(path) > 0


def test_if_blocks_cannot_be_reserved_it_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def no_room(number: int, position: int, size: int) -> bool:
        tried.append(position)
        return False

    monkeypatch.setattr(quire.real.disk, "reserve", no_room)
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    for position in range(8, 40):
        file.pwritev([b"12345678"], position * MB)
    assert tried == [8 * MB]
    assert file.pread(8, 39 * MB) == b"12345678"


@pytest.mark.parametrize("why", ["cannot", "almost full"])
def test_a_file_that_has_nothing_set_aside_is_not_cut_at_its_end(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On XFS that would wait until all of the file is on disk."""
    cut: list[int] = []
    monkeypatch.setattr(os, "ftruncate", lambda number, size: cut.append(size))
    if why == "cannot":
        monkeypatch.setattr(quire.real.disk, "reserve", lambda number, position, size: False)
    else:
        monkeypatch.setattr(os, "fstatvfs", lambda number: AlmostFull)
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    file.pwritev([bytes(20 * MB)], 0)
    file.pwritev([b"x"], 20 * MB)
    file.trim()
    assert cut == []


def test_nothing_is_set_aside_where_it_does_not_pay() -> None:
    if "tmpfs /dev/shm tmpfs" not in Path("/proc/mounts").read_text():
        pytest.skip("there is no tmpfs")
    with TemporaryFile(dir="/dev/shm") as file:
        assert not reserve(file.fileno(), 0, 4096)
        assert os.fstat(file.fileno()).st_blocks == 0


def test_the_last_gigabyte_of_a_disk_is_not_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{tmp_path}/a"
    file = RealDisk().open(path, create=True)
    file.pwritev([bytes(8 * MB)], 0)
    monkeypatch.setattr(os, "fstatvfs", lambda number: AlmostFull)
    file.pwritev([b"x"], 8 * MB)
    assert set_aside(path) == 0
    monkeypatch.undo()
    file.pwritev([b"x"], 9 * MB)
    assert set_aside(path) > 0


def test_a_log_gives_back_at_every_roll_and_when_it_is_closed(tmp_path: Path) -> None:
    disk = RealDisk()
    os.mkdir(tmp_path / "orders-0")
    log = open_log(disk, LogConfig(segment_bytes=24 * MB), folder=f"{tmp_path}/orders-0")
    for _ in range(35):
        append(log, batch(bytes(MB)))
    first, second = (segment.path for segment in log.segments)
    assert set_aside(first) == 0
    assert set_aside(second) > 0
    log.close()
    assert set_aside(second) == 0
