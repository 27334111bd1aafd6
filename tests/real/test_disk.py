"""The real disk: positioned I/O, names that change under open files, and fewer descriptors than files."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from quire.real.disk import RealDisk, RealFile
from quire.seams.disk import Disk, File, write_atomically


def test_real_disk_and_file_have_the_shape_of_the_seam(tmp_path: Path) -> None:
    disk: Disk = RealDisk()
    file: File = disk.open(f"{tmp_path}/a", create=True)
    file.close()


def test_bytes_written_at_a_position_are_read_back(tmp_path: Path) -> None:
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    assert file.pwritev([b"hello ", bytearray(b"wor"), memoryview(b"ld")], 3) == 11
    assert file.size() == 14
    assert file.pread(11, 3) == b"hello world"
    assert file.pread(100, 9) == b"world"
    assert file.pread(100, 14) == b""
    buffer = bytearray(5)
    assert file.pread_into(buffer, 9) == 5
    assert buffer == b"world"
    assert file.pread_into(bytearray(9), 9) == 5
    file.truncate(6)
    assert file.size() == 6
    file.sync()
    file.close()


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 200_000])
def test_a_file_of_any_size_is_read_at_once(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "a").write_bytes(content)
    assert RealDisk().read_file(f"{tmp_path}/a") == content
    with pytest.raises(FileNotFoundError):
        RealDisk().read_file(f"{tmp_path}/b")


def test_more_buffers_than_one_system_call_takes_are_all_written(tmp_path: Path) -> None:
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    buffers = [bytes([i % 256]) * (i % 7) for i in range(5000)]
    assert file.pwritev(buffers, 10) == sum(map(len, buffers))
    assert file.pread(1 << 20, 10) == b"".join(buffers)


def test_a_short_write_is_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    whole = os.pwritev

    def three_bytes_at_a_time(number: int, buffers: list[bytes], position: int) -> int:
        return whole(number, [b"".join(buffers)[:3]], position)

    monkeypatch.setattr(os, "pwritev", three_bytes_at_a_time)
    assert file.pwritev([b"0123", b"", b"456", b"789abc"], 0) == 13
    assert file.pread(100, 0) == b"0123456789abc"


def test_a_missing_file_is_not_made_unless_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RealDisk().open(f"{tmp_path}/a")
    assert not os.path.exists(f"{tmp_path}/a")


def test_a_closed_file_refuses_use(tmp_path: Path) -> None:
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    file.close()
    file.close()
    with pytest.raises(OSError, match="closed"):
        file.pread(1, 0)


def test_hundreds_of_files_live_on_ten_descriptors(tmp_path: Path) -> None:
    disk = RealDisk(open_files=10)
    files = [disk.open(f"{tmp_path}/{i}", create=True) for i in range(300)]
    for i, file in enumerate(files):
        file.pwritev([b"%d" % i], 0)
    assert [file.pread(9, 0) for file in files] == [b"%d" % i for i in range(300)]
    assert disk.descriptors == 10
    for file in files:
        file.close()
    assert disk.descriptors == 0


def test_a_file_that_is_used_all_the_time_keeps_its_descriptor(tmp_path: Path) -> None:
    disk = RealDisk(open_files=10)
    busy = disk.open(f"{tmp_path}/busy", create=True)
    number = busy.acquire()
    busy.release()
    for i in range(100):
        disk.open(f"{tmp_path}/{i}", create=True)
        busy.size()
    assert busy.acquire() == number
    busy.release()


@pytest.mark.parametrize("open_files", [1, 100])
def test_a_renamed_file_stays_readable_and_knows_its_path(tmp_path: Path, open_files: int) -> None:
    disk = RealDisk(open_files)
    file = _file(disk, f"{tmp_path}/a", b"old")
    _crowd_out(disk, tmp_path)
    disk.rename(f"{tmp_path}/a", f"{tmp_path}/b")
    _crowd_out(disk, tmp_path)
    assert file.pread(9, 0) == b"old"
    assert file.path == f"{tmp_path}/b"


@pytest.mark.parametrize("open_files", [1, 100])
def test_a_replaced_file_stays_readable_through_open_handles(tmp_path: Path, open_files: int) -> None:
    disk = RealDisk(open_files)
    old = _file(disk, f"{tmp_path}/a", b"old")
    new = _file(disk, f"{tmp_path}/b", b"new")
    disk.rename(f"{tmp_path}/b", f"{tmp_path}/a")
    _crowd_out(disk, tmp_path)
    assert old.pread(9, 0) == b"old"
    assert new.pread(9, 0) == b"new"
    disk.rename(f"{tmp_path}/a", f"{tmp_path}/c")
    _crowd_out(disk, tmp_path)
    assert (old.pread(9, 0), new.pread(9, 0), new.path) == (b"old", b"new", f"{tmp_path}/c")


@pytest.mark.parametrize("open_files", [1, 100])
def test_removed_files_stay_readable_and_a_new_one_may_take_the_name(tmp_path: Path, open_files: int) -> None:
    disk = RealDisk(open_files)
    old = _file(disk, f"{tmp_path}/a", b"old")
    _crowd_out(disk, tmp_path)
    disk.remove(f"{tmp_path}/a")
    new = _file(disk, f"{tmp_path}/a", b"new")
    disk.rename(f"{tmp_path}/a", f"{tmp_path}/b")
    _crowd_out(disk, tmp_path)
    assert (old.pread(9, 0), new.pread(9, 0)) == (b"old", b"new")


@pytest.mark.parametrize("open_files", [1, 100])
def test_files_follow_their_folder_when_it_is_renamed_and_removed(tmp_path: Path, open_files: int) -> None:
    disk = RealDisk(open_files)
    disk.make_dirs(f"{tmp_path}/topic-0/deeper")
    shallow = _file(disk, f"{tmp_path}/topic-0/log", b"shallow")
    deep = _file(disk, f"{tmp_path}/topic-0/deeper/log", b"deep")
    disk.rename(f"{tmp_path}/topic-0", f"{tmp_path}/topic-0-delete")
    _crowd_out(disk, tmp_path)
    assert (shallow.pread(9, 0), deep.pread(9, 0)) == (b"shallow", b"deep")
    assert deep.path == f"{tmp_path}/topic-0-delete/deeper/log"
    disk.remove_tree(f"{tmp_path}/topic-0-delete")
    _crowd_out(disk, tmp_path)
    assert (shallow.pread(9, 0), deep.pread(9, 0)) == (b"shallow", b"deep")
    assert not disk.exists(f"{tmp_path}/topic-0-delete")


def test_a_held_file_outlives_its_owner(tmp_path: Path) -> None:
    disk = RealDisk(open_files=1)
    file = _file(disk, f"{tmp_path}/a", b"slice")
    file.hold()
    disk.remove(f"{tmp_path}/a")
    file.close()
    _crowd_out(disk, tmp_path)
    assert file.pread(9, 0) == b"slice"
    before = disk.descriptors
    file.unhold()
    assert disk.descriptors == before - 1
    with pytest.raises(OSError, match="closed"):
        file.pread(9, 0)


def test_threads_never_read_each_others_files_while_descriptors_come_and_go(tmp_path: Path) -> None:
    disk = RealDisk(open_files=2)
    files = [_file(disk, f"{tmp_path}/{i}", b"%d" % i * 50) for i in range(8)]
    wrong: list[object] = []

    def read_and_rename(mine: int) -> None:
        try:
            for turn in range(150):
                for i, file in enumerate(files):
                    if file.pread(50, 0) != b"%d" % i * 50:
                        wrong.append(i)
                at = files[mine].path
                disk.rename(at, f"{tmp_path}/{mine}-{turn}")
        except OSError as error:
            wrong.append(error)

    threads = [threading.Thread(target=read_and_rename, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_recently_written_pages_are_cached_and_dropped_ones_are_not(tmp_path: Path) -> None:
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    file.pwritev([b"x" * 600_000], 0)
    assert file.cached(600_000, 0)
    file.sync()
    number = file.acquire()
    os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
    file.release()
    room = memoryview(bytearray(100))
    if file.pread_ready(room, 400_000) == 100:
        pytest.skip("this file system keeps what it is asked to drop")
    assert not file.cached(600_000, 0)
    assert file.pread_into(bytearray(600_000), 0) == 600_000
    assert file.cached(600_000, 0)
    assert file.pread_ready(room, 400_000) == 100


def test_folders_are_listed_in_order_and_removed_whole(tmp_path: Path) -> None:
    disk = RealDisk()
    disk.make_dirs(f"{tmp_path}/x/y")
    disk.make_dirs(f"{tmp_path}/x/y")
    write_atomically(disk, f"{tmp_path}/x/b", b"content")
    write_atomically(disk, f"{tmp_path}/x/b", b"changed")
    disk.open(f"{tmp_path}/x/a", create=True).close()
    disk.sync_dir(f"{tmp_path}/x")
    assert disk.list_dir(f"{tmp_path}/x") == ["a", "b", "y"]
    assert disk.is_dir(f"{tmp_path}/x/y")
    assert not disk.is_dir(f"{tmp_path}/x/a")
    assert disk.read_file(f"{tmp_path}/x/b") == b"changed"
    assert disk.file_size(f"{tmp_path}/x/b") == 7
    assert 0 < disk.free_bytes(str(tmp_path)) < disk.total_bytes(str(tmp_path))
    disk.remove_tree(f"{tmp_path}/x")
    assert not disk.exists(f"{tmp_path}/x")


def test_a_lock_is_exclusive_in_this_process_and_for_others(tmp_path: Path) -> None:
    disk = RealDisk(open_files=1)
    path = f"{tmp_path}/.lock"
    lock = disk.lock(path)
    assert lock is not None
    assert disk.lock(path) is None
    _crowd_out(disk, tmp_path)
    assert _lock_in_another_process(path) == "None"
    lock.close()
    assert _lock_in_another_process(path) != "None"
    again = disk.lock(path)
    assert again is not None


def _file(disk: RealDisk, path: str, content: bytes) -> RealFile:
    file = disk.open(path, create=True)
    file.pwritev([content], 0)
    return file


def _crowd_out(disk: RealDisk, tmp_path: Path) -> None:
    """Uses so many other files that a small table closes every descriptor that it may close."""
    disk.make_dirs(f"{tmp_path}/crowd")
    others = [disk.open(f"{tmp_path}/crowd/{i}", create=True) for i in range(3)]
    for file in others + others:
        file.size()
    for file in others:
        file.close()


def _lock_in_another_process(path: str) -> str:
    code = "import sys; from quire.real.disk import RealDisk; print(RealDisk().lock(sys.argv[1]))"
    return subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True, text=True).stdout.strip()
