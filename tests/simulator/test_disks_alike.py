"""The simulated disk and the real one give the same answers, so that tests on one are valid for the other."""

from collections.abc import Callable
from pathlib import Path

import pytest

from quire.real.disk import RealDisk
from quire.seams import Disk
from simulator.disk import SimDisk


@pytest.fixture(params=["real", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.chdir(tmp_path)
    return RealDisk() if request.param == "real" else SimDisk()


def write(disk: Disk, path: str, data: bytes) -> None:
    file = disk.open(path, create=True)
    file.pwritev([data], 0)
    file.close()


def test_reads_and_writes_at_positions(disk: Disk) -> None:
    file = disk.open("a", create=True)
    assert file.pwritev([b"ab", b"", bytearray(b"c")], 2) == 3
    assert (file.pread(10, 0), file.pread(2, 3), file.pread(5, 99)) == (b"\0\0abc", b"bc", b"")
    buffer = bytearray(4)
    assert (file.pread_into(buffer, 3), bytes(buffer)) == (2, b"bc\0\0")
    file.truncate(3)
    file.truncate(6)
    assert (file.size(), file.pread(10, 0)) == (6, b"\0\0a\0\0\0")
    file.sync()
    file.close()
    assert (disk.read_file("a"), disk.file_size("a")) == (b"\0\0a\0\0\0", 6)


def test_folders_are_made_listed_renamed_and_removed(disk: Disk) -> None:
    disk.make_dirs("x/y/z")
    disk.make_dirs("x/y")
    write(disk, "x/b", b"b")
    write(disk, "x/a", b"a")
    assert disk.list_dir("x") == ["a", "b", "y"]
    file = disk.open("x/a")
    disk.rename("x/a", "x/b")
    disk.rename("x", "w")
    assert (file.path, file.pread(1, 0)) == ("w/b", b"a")
    assert (disk.exists("x"), disk.is_dir("w"), disk.is_dir("w/b"), disk.list_dir("w")) == (
        False,
        True,
        False,
        ["b", "y"],
    )
    disk.remove("w/b")
    assert file.pread(1, 0) == b"a"
    disk.sync_dir("w")
    disk.remove_tree("w")
    assert disk.list_dir(".") == []


def test_a_rewritten_file_can_be_as_old_as_its_source(disk: Disk) -> None:
    write(disk, "a", b"a")
    disk.set_modified_ms("a", 1_700_000_000_123)
    assert disk.modified_ms("a") == 1_700_000_000_123


def test_a_lock_is_exclusive_until_it_is_closed(disk: Disk) -> None:
    lock = disk.lock(".lock")
    assert lock is not None
    assert disk.lock(".lock") is None
    lock.close()
    assert disk.lock(".lock") is not None


@pytest.mark.parametrize(
    "call",
    [
        lambda disk: disk.open("missing"),
        lambda disk: disk.open("missing/file", create=True),
        lambda disk: disk.list_dir("missing"),
        lambda disk: disk.list_dir("file"),
        lambda disk: disk.make_dirs("file/below"),
        lambda disk: disk.rename("missing", "other"),
        lambda disk: disk.rename("file", "full"),
        lambda disk: disk.rename("other", "full"),
        lambda disk: disk.remove("missing"),
        lambda disk: disk.remove("full"),
        lambda disk: disk.remove_tree("missing"),
        lambda disk: disk.read_file("missing"),
        lambda disk: disk.read_file("full"),
        lambda disk: disk.file_size("missing"),
        lambda disk: disk.set_modified_ms("missing", 1),
        lambda disk: disk.sync_dir("missing"),
    ],
)
def test_misuse_is_an_os_error_on_both(call: Callable[[Disk], object], disk: Disk) -> None:
    write(disk, "file", b"x")
    disk.make_dirs("full/below")
    disk.make_dirs("other")
    with pytest.raises(OSError, match=r"\[Errno"):
        call(disk)
