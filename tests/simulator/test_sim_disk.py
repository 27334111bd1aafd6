"""The simulated disk behaves like a file system while it runs, and forgets only what was not synced."""

import errno
import itertools
from collections.abc import Callable

import pytest

from quire.seams import Disk, FileSlice
from quire.seams.disk import write_atomically
from simulator.disk import Crashed, DiskCall, SimDisk, SimFile
from simulator.random import SimRandom
from simulator.trace import Trace

SEEDS = range(60)


def written(disk: SimDisk, path: str, data: bytes, *, sync: bool = False) -> SimFile:
    file = disk.open(path, create=True)
    file.pwritev([data], 0)
    if sync:
        file.sync()
        disk.sync_dir(path.rpartition("/")[0] or ".")
    return file


def test_it_reads_what_was_written_also_through_slices_and_buffers() -> None:
    disk = SimDisk()
    file = disk.open("a.log", create=True)
    assert file.pwritev([b"hello", bytearray(b" "), memoryview(b"world")], 2) == 11
    assert file.pread(100, 0) == b"\0\0hello world"
    assert FileSlice(file, 2, 5).read() == b"hello"
    buffer = bytearray(20)
    assert file.pread_into(buffer, 8) == 5
    assert buffer[:5] == b"world"
    assert file.pread_into(memoryview(buffer)[:2], 50) == 0
    file.truncate(4)
    assert (file.size(), disk.file_size("a.log"), disk.read_file("a.log")) == (4, 4, b"\0\0he")


def test_folders_list_rename_and_remove_like_posix() -> None:
    sim = SimDisk()
    disk: Disk = sim
    disk.make_dirs("data/topic-0")
    disk.make_dirs("data/topic-0")
    handle = written(sim, "data/topic-0/a", b"1")
    written(sim, "data/topic-0/b", b"2").close()
    assert disk.list_dir("data/topic-0") == ["a", "b"]
    disk.rename("data/topic-0/a", "data/topic-0/b")
    assert disk.list_dir("/data/topic-0/") == ["b"]
    assert disk.read_file("./data/topic-0/b") == b"1"
    handle.pwritev([b"9"], 1)
    assert disk.read_file("data/topic-0/b") == b"19"
    disk.rename("data/topic-0", "data/topic-0.deleted")
    disk.remove("data/topic-0.deleted/b")
    assert handle.pread(2, 0) == b"19", "an open file outlives its name"
    written(sim, "data/topic-0.deleted/c", b"3").close()
    disk.remove_tree("data/topic-0.deleted")
    assert (disk.exists("data"), disk.is_dir("data"), disk.list_dir("data")) == (True, True, [])


def test_misuse_raises_the_error_a_real_file_system_would() -> None:
    disk = SimDisk()
    disk.make_dirs("folder/full")
    written(disk, "file", b"").close()
    cases: list[tuple[Callable[[], object], int]] = [
        (lambda: disk.open("missing"), errno.ENOENT),
        (lambda: disk.open("nowhere/file", create=True), errno.ENOENT),
        (lambda: disk.open("folder"), errno.EISDIR),
        (lambda: disk.list_dir("missing"), errno.ENOENT),
        (lambda: disk.list_dir("file"), errno.ENOTDIR),
        (lambda: disk.make_dirs("file/below"), errno.ENOTDIR),
        (lambda: disk.rename("missing", "x"), errno.ENOENT),
        (lambda: disk.rename("file", "folder"), errno.ENOTEMPTY),
        (lambda: disk.rename("file", "folder/file"), errno.EXDEV),
        (lambda: disk.remove("missing"), errno.ENOENT),
        (lambda: disk.remove("folder"), errno.EISDIR),
        (lambda: disk.remove_tree("missing"), errno.ENOENT),
        (lambda: disk.read_file("missing"), errno.ENOENT),
        (lambda: disk.sync_dir("missing"), errno.ENOENT),
    ]
    for call, code in cases:
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == code
    closed = disk.open("file")
    closed.close()
    with pytest.raises(OSError, match="file descriptor"):
        closed.pread(1, 0)
    assert disk.open_paths() == []


def test_a_lock_is_held_by_one_and_freed_by_close_and_by_a_crash() -> None:
    disk = SimDisk()
    lock = disk.lock(".lock")
    assert lock is not None
    assert disk.lock("./.lock") is None
    lock.close()
    assert disk.lock(".lock") is not None
    assert disk.kill().lock(".lock") is not None


@pytest.mark.parametrize("reorder", [False, True])
def test_synced_data_always_survives_power_loss(reorder: bool) -> None:
    for seed in SEEDS:
        random = SimRandom(seed)
        disk = SimDisk(random)
        file = disk.open("log", create=True)
        disk.sync_dir(".")
        synced = b""
        for _ in range(random.below(20)):
            data = random.random_bytes(random.below(2000))
            file.pwritev([data], file.size())
            if random.chance(0.3):
                file.sync()
                synced = file.pread(1 << 20, 0)
        everything = file.pread(1 << 20, 0)
        found = disk.crash(random, reorder=reorder).read_file("log")
        assert found.startswith(synced), seed
        assert len(found) <= len(everything), seed
        assert reorder or everything.startswith(found), seed


def test_unsynced_writes_are_kept_torn_or_lost_depending_on_the_seed() -> None:
    lengths = []
    for seed in SEEDS:
        disk = SimDisk()
        written(disk, "log", b"", sync=True).pwritev([b"x" * 100], 0)
        lengths.append(disk.crash(SimRandom(seed)).file_size("log"))
    assert min(lengths) == 0
    assert max(lengths) == 100
    assert any(0 < length < 100 for length in lengths)


def test_reordered_sectors_leave_holes_that_a_prefix_never_has() -> None:
    holes = 0
    for seed in SEEDS:
        disk = SimDisk()
        file = written(disk, "log", b"", sync=True)
        for sector in range(8):
            file.pwritev([b"x" * 512], sector * 512)
        found = disk.crash(SimRandom(seed), reorder=True).read_file("log")
        assert set(found) <= {0, ord("x")}
        holes += b"\0" in found
    assert holes > len(SEEDS) // 2


def test_an_unsynced_overwrite_of_synced_bytes_leaves_each_old_or_new() -> None:
    for seed in SEEDS:
        disk = SimDisk()
        file = written(disk, "log", b"o" * 2000, sync=True)
        file.pwritev([b"n" * 1000], 500)
        found = disk.crash(SimRandom(seed), reorder=seed % 2 == 0).read_file("log")
        assert len(found) == 2000
        assert set(found[500:1500]) <= set(b"on")
        assert found[:500] + found[1500:] == b"o" * 1000


def test_a_synced_file_whose_folder_was_not_synced_may_have_no_name() -> None:
    outcomes = set()
    for seed in SEEDS:
        disk = SimDisk()
        file = disk.open("log", create=True)
        file.pwritev([b"data"], 0)
        file.sync()
        found = disk.crash(SimRandom(seed))
        outcomes.add(found.read_file("log") if found.exists("log") else None)
    assert outcomes == {None, b"data"}


def test_a_prefix_of_the_unsynced_names_in_a_folder_survives() -> None:
    outcomes = set()
    for seed in SEEDS:
        disk = SimDisk()
        for name in "abc":
            disk.open(name, create=True).close()
        disk.remove("a")
        outcomes.add("".join(disk.crash(SimRandom(seed)).list_dir(".")))
    assert outcomes == {"", "a", "ab", "abc", "bc"}


def test_a_folder_not_synced_into_its_parent_takes_its_files_with_it() -> None:
    outcomes = set()
    for seed in SEEDS:
        disk = SimDisk()
        disk.make_dirs("data/topic-0")
        disk.sync_dir(".")
        written(disk, "data/topic-0/log", b"x", sync=True)
        outcomes.add(tuple(disk.crash(SimRandom(seed)).list_dir("data")))
    assert outcomes == {(), ("topic-0",)}


def test_a_killed_process_loses_nothing_that_was_written() -> None:
    disk = SimDisk()
    disk.make_dirs("data")
    file = written(disk, "data/log", b"not synced")
    after = disk.kill()
    assert after.read_file("data/log") == b"not synced"
    with pytest.raises(Crashed):
        file.pwritev([b"x"], 0)
    with pytest.raises(Crashed):
        disk.exists("data")
    found = {after_kill_then_power_loss(seed) for seed in SEEDS}
    assert len(found) > 1, "what survived the kill was still not durable"


def after_kill_then_power_loss(seed: int) -> bytes:
    disk = SimDisk()
    written(disk, "log", b"", sync=True).pwritev([b"not synced"], 0)
    return disk.kill().crash(SimRandom(seed)).read_file("log")


@pytest.mark.parametrize("power_loss", [False, True])
def test_write_atomically_leaves_the_old_content_or_the_new_at_every_crash_point(power_loss: bool) -> None:
    crashes = 0
    for seed in range(20):
        for number in itertools.count(1):
            random = SimRandom(f"{seed}/{number}")
            disk = SimDisk(random)
            write_atomically(disk, "checkpoint", b"old content")
            disk.calls.crash_at = disk.operations + number
            try:
                write_atomically(disk, "checkpoint", b"new")
            except Crashed:
                found = disk.crash(random, reorder=seed % 2 == 0) if power_loss else disk.kill()
                assert found.read_file("checkpoint") in (b"old content", b"new")
                crashes += 1
            else:
                assert disk.crash(random).read_file("checkpoint") == b"new"
                break
    assert crashes == 20 * 6, "create, truncate, write, sync, rename, sync_dir"


def test_renaming_before_syncing_the_bytes_is_caught() -> None:
    """The classic mistake: the new name is durable, its content is not."""
    outcomes = set()
    for seed in SEEDS:
        disk = SimDisk()
        write_atomically(disk, "checkpoint", b"old")
        written(disk, "checkpoint.tmp", b"new").close()
        disk.rename("checkpoint.tmp", "checkpoint")
        disk.sync_dir(".")
        outcomes.add(disk.crash(SimRandom(seed)).read_file("checkpoint"))
    assert b"" in outcomes


def test_an_injected_error_hits_the_chosen_call_only() -> None:
    disk = SimDisk()
    disk.fail_at(3, errno.ENOSPC)
    file = disk.open("log", create=True)
    file.pwritev([b"a"], 0)
    with pytest.raises(OSError, match="No space"):
        file.pwritev([b"b"], 1)
    file.pwritev([b"c"], 1)
    assert file.pread(2, 0) == b"ac"

    def is_read_of_log(operation: DiskCall) -> bool:
        return operation.kind == "read" and operation.path == "log"

    disk.fail_when(is_read_of_log, times=2)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            file.pread(1, 0)
    assert file.pread(1, 0) == b"a"


def test_bytes_of_a_failed_sync_stay_readable_and_are_not_durable_even_after_the_next_sync() -> None:
    disk = SimDisk()
    file = written(disk, "log", b"", sync=True)
    file.pwritev([b"lost"], 0)
    disk.fail_when(lambda operation: operation.kind == "sync")
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    file.sync()
    assert file.pread(4, 0) == b"lost"
    assert disk.crash(SimRandom(1)).read_file("log") == b""


def test_a_write_takes_what_a_failed_sync_left_in_its_sector_to_disk_but_nothing_of_other_sectors() -> None:
    disk = SimDisk()
    file = written(disk, "log", b"", sync=True)
    file.pwritev([b"a" * 600], 0)
    disk.fail_when(lambda operation: operation.kind == "sync")
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    file.pwritev([b"b" * 10], 600)
    file.sync()
    assert disk.crash(SimRandom(1)).read_file("log") == bytes(512) + b"a" * 88 + b"b" * 10


def test_a_full_disk_refuses_growth_and_tells_its_free_bytes() -> None:
    disk = SimDisk(capacity_bytes=100)
    file = written(disk, "log", b"x" * 60)
    assert (disk.free_bytes("."), disk.total_bytes(".")) == (40, 100)
    with pytest.raises(OSError, match="No space"):
        file.pwritev([b"y" * 50], 60)
    file.pwritev([b"y" * 60], 0)


def test_cold_reads_happen_as_often_as_asked() -> None:
    disk = SimDisk(SimRandom(1), cold_chance=0.5)
    file = written(disk, "log", b"x")
    assert {file.cached(1, 0) for _ in range(50)} == {True, False}
    assert written(SimDisk(), "log", b"x").cached(1, 0)


def digest_of_a_run(seed: int) -> str:
    trace = Trace()
    random = SimRandom(seed)
    disk = SimDisk(random.stream("disk"), trace=trace)
    for _ in range(5):
        file = disk.open("log", create=True)
        for _ in range(10):
            file.pwritev([random.random_bytes(50)], file.size())
        disk = disk.crash(random, reorder=random.chance(0.5))
        if disk.exists("log"):
            trace.note(disk.read_file("log").hex())
    return trace.digest


def test_a_seed_run_twice_gives_the_same_trace() -> None:
    assert digest_of_a_run(3) == digest_of_a_run(3)
    assert digest_of_a_run(3) != digest_of_a_run(4)


def test_a_flipped_bit_stays_until_it_is_overwritten_and_does_not_hide_what_was_written() -> None:
    disk = SimDisk()
    file = written(disk, "a", b"abc", sync=True)
    disk.flip("a", 1, 0)
    assert (file.pread(3, 0), disk.read_file("a")) == (b"acc", b"acc")
    assert (disk.peek("a"), disk.peek("a", 1)) == (b"abc", b"bc")
    after = disk.kill().crash(SimRandom(1))
    assert (after.read_file("a"), after.peek("a")) == (b"acc", b"abc")
    after.open("a").pwritev([b"x"], 1)
    assert after.read_file("a") == after.peek("a") == b"axc"


def test_a_flipped_bit_that_is_cut_off_is_gone() -> None:
    disk = SimDisk()
    file = written(disk, "a", b"abc", sync=True)
    disk.flip("a", 2, 7)
    file.truncate(2)
    file.pwritev([b"d"], 2)
    assert disk.read_file("a") == disk.peek("a") == b"abd"


def test_only_what_is_synced_is_damaged() -> None:
    disk = SimDisk()
    written(disk, "a", b"abc")
    assert not disk.is_synced("a")
    with pytest.raises(AssertionError, match="not synced"):
        disk.flip("a", 0, 0)
