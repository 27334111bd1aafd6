"""The machine under a process: synced data survives a power loss, other data may not, and every change is recorded."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.power_loss.machine import Machine, contents

SEEDS = range(40)


class Process:
    """Runs Python statements on a machine, each time in a process that is killed after them."""

    def __init__(self, folder: Path, *, syncs: bool = True) -> None:
        self.root = folder / "root"
        self.machine = Machine(self.root, folder, syncs=syncs)

    def run(self, *lines: str) -> None:
        prepared = ["import os, signal, threading", f"os.chdir({str(self.root)!r})", *lines]
        killed = [*prepared, "os.kill(os.getpid(), signal.SIGKILL)"]
        ended = subprocess.run([sys.executable, "-c", "\n".join(killed)], env=self.machine.environment, check=False)
        assert ended.returncode == -9, ended

    def found(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


OPEN = "file = os.open('a', os.O_RDWR | os.O_CREAT)"
SYNC_NAMES = "folder = os.open('.', os.O_RDONLY); os.fsync(folder)"


Outcome = tuple[tuple[str, bytes | None], ...]
"""Every file and its bytes."""


def outcomes(folder: Path, *lines: str, syncs: bool = True) -> set[Outcome]:
    """The disk after a power loss that follows these statements."""
    folder.mkdir(exist_ok=True)
    process = Process(folder, syncs=syncs)
    process.run(*lines)
    return {tuple(sorted(contents(process.machine.kept(seed)).items())) for seed in SEEDS}


def test_synced_data_survives(tmp_path: Path) -> None:
    for sync in ("os.fsync(file)", "os.fdatasync(file)"):
        lines = [OPEN, "os.pwrite(file, b'first', 0)", "os.pwritev(file, [b'x', b'yz'], 5)", sync, SYNC_NAMES]
        assert outcomes(tmp_path / sync, *lines) == {(("a", b"firstxyz"),)}


def test_a_disk_that_lies_about_syncs_loses_what_was_synced(tmp_path: Path) -> None:
    found = outcomes(tmp_path, OPEN, "os.write(file, b'first')", "os.fsync(file)", SYNC_NAMES, syncs=False)
    assert {(), (("a", b""),), (("a", b"first"),)} <= found


def test_a_file_whose_name_was_not_synced_may_be_gone_with_all_its_bytes(tmp_path: Path) -> None:
    assert outcomes(tmp_path, OPEN, "os.write(file, b'first')", "os.fsync(file)") == {(), (("a", b"first"),)}


def test_unsynced_bytes_may_be_lost_or_torn(tmp_path: Path) -> None:
    lines = [OPEN, "os.write(file, b'first')", "os.fsync(file)", SYNC_NAMES, "os.write(file, b'second')"]
    found = {content or b"" for ((_, content),) in outcomes(tmp_path, *lines)}
    assert {b"first", b"firstsecond", b"first" + bytes(6)} < found, "the size may be there without the bytes"
    assert all(b"firstsecond".startswith(content.rstrip(b"\0")) for content in found)


def test_an_unsynced_rename_is_done_or_not(tmp_path: Path) -> None:
    lines = [OPEN, "os.write(file, b'first')", "os.fsync(file)", SYNC_NAMES, "os.rename('a', 'b')"]
    assert outcomes(tmp_path, *lines) == {(("a", b"first"),), (("b", b"first"),)}


def test_an_unsynced_removal_and_truncation_may_be_undone(tmp_path: Path) -> None:
    lines = [OPEN, "os.write(file, b'first')", "os.fsync(file)", SYNC_NAMES]
    assert outcomes(tmp_path / "removed", *lines, "os.unlink('a')") == {(), (("a", b"first"),)}
    assert outcomes(tmp_path / "truncated", *lines, "os.ftruncate(file, 2)") == {(("a", b"fi"),), (("a", b"first"),)}


def test_a_kill_alone_loses_nothing_and_syncs_nothing(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.run(OPEN, "os.write(file, b'first')", "os.fsync(file)", SYNC_NAMES)
    process.run("file = os.open('a', os.O_RDWR | os.O_APPEND)", "os.write(file, b'second')")
    process.run("os.stat('a')")
    assert process.found() == {"a": b"firstsecond"}
    kept = {contents(process.machine.kept(seed))["a"] for seed in SEEDS}
    assert {b"first", b"firstsecond"} < kept


def test_data_found_after_a_power_loss_survives_the_next_one(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.run(OPEN, "os.write(file, b'first')", "os.rename('a', 'b')")
    process.machine.lose_power("a seed")
    found = process.found()
    process.run("os.mkdir('other')")
    for seed in SEEDS:
        process.machine.lose_power(seed)
        assert process.found() == found


def test_threads_and_numbers_of_removed_files_do_not_confuse_it(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.run(
        "def work(name):",
        "    os.mkdir(name)",
        "    for number in range(50):",
        "        file = os.open(f'{name}/{number}', os.O_RDWR | os.O_CREAT)",
        "        for at in range(20):",
        "            os.pwrite(file, name.encode() * 100, at * 100)",
        "        os.close(file)",
        "        if number % 2:",
        "            os.unlink(f'{name}/{number}')",
        "threads = [threading.Thread(target=work, args=(name,)) for name in 'abcd']",
        "[thread.start() for thread in threads]",
        "[thread.join() for thread in threads]",
        "os.rename('a', 'e')",
    )
    assert len(process.found()) == 100
    process.machine.lose_power(1)  # It compares the replayed disk with the folder.
    assert process.machine.changed_names


def test_a_change_that_bypasses_the_recorder_is_noticed(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.run(OPEN, "os.write(file, b'first')")
    for name in ("x", "y", "z"):
        (process.root / name).write_bytes(b"by another process")
    with pytest.raises(AssertionError, match="not recorded: \\['x', 'y', 'z'\\]"):
        process.machine.lose_power(1)


def test_a_change_that_cannot_be_recorded_ends_the_process(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "root", tmp_path)
    program = "import os, mmap; f = os.open('a', os.O_RDWR | os.O_CREAT); os.ftruncate(f, 9); mmap.mmap(f, 9)"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path / "root",
        env=machine.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == -6
    assert "cannot record writing to mapped memory" in ended.stderr


def test_each_power_loss_has_another_boot_id(tmp_path: Path) -> None:
    process = Process(tmp_path)
    read = "print(open('/proc/sys/kernel/random/boot_id').read().strip())"

    def boot_id() -> str:
        done = subprocess.run(
            [sys.executable, "-c", read], env=process.machine.environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    first = boot_id()
    assert boot_id() == first != Path("/proc/sys/kernel/random/boot_id").read_text()
    process.machine.lose_power(1)
    assert boot_id() != first
