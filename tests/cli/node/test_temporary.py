"""Folders of killed processes are removed, and no others."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from quire.cli.node.temporary import CLUSTER_PREFIX, EPHEMERAL_PREFIX, TemporaryFolder, sweep
from tests.cli.command import killed_at_the_end, started


def left_over(place: Path, name: str, *, lock: bool = True) -> Path:
    folder = place / name
    folder.mkdir()
    (folder / "data").write_text("records")
    if lock:
        (folder / ".lock").touch()
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("lock", [True, False])
@pytest.mark.parametrize("prefix", [EPHEMERAL_PREFIX, CLUSTER_PREFIX])
def test_folders_that_no_process_holds_are_removed_however_new_they_are(prefix: str, lock: bool, place: Path) -> None:
    folder = left_over(place, f"{prefix}abcd_123", lock=lock)
    TemporaryFolder(prefix).remove()
    assert not folder.exists()


def test_folders_that_may_be_in_use_stay(place: Path) -> None:
    held = TemporaryFolder(CLUSTER_PREFIX)
    held_data = Path(held.path) / "data"
    held_data.write_text("records")
    elsewhere = left_over(place, "elsewhere")
    (place / f"{CLUSTER_PREFIX}linklink").symlink_to(elsewhere)
    kept = [
        elsewhere,
        left_over(place, f"{EPHEMERAL_PREFIX}another-name"),
        left_over(place, "quire-somebody"),
    ]
    sweep(str(place))
    assert held_data.exists()
    assert all((folder / "data").exists() for folder in kept)
    held.remove()
    assert not held_data.parent.exists()


def test_an_old_folder_that_was_never_renamed_is_removed(place: Path) -> None:
    old, new = (place / f"new-{CLUSTER_PREFIX}{name}" for name in ("oldoldol", "newnewne"))
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (0, 0))
    sweep(str(place))
    assert not old.exists()
    assert new.exists(), "its owner may be about to lock it"


def test_folders_that_another_process_holds_stay_until_it_is_killed(place: Path) -> None:
    script = f"""
        import sys, tempfile
        from quire.cli.node.temporary import TemporaryFolder
        tempfile.tempdir = {str(place)!r}
        print(TemporaryFolder({CLUSTER_PREFIX!r}).path, flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with killed_at_the_end(
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        sweep(str(place))
        assert folder.exists()
        process.kill()
        process.wait()
        sweep(str(place))
        assert not folder.exists()


def test_an_ephemeral_node_holds_its_folder_and_the_next_one_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    place = {"TMPDIR": str(tmp_path)}
    with started("--ephemeral", env=place) as node:
        (folder,) = tmp_path.iterdir()
        sweep(str(tmp_path))
        assert (folder / "meta.properties").exists(), "it is in use"
        node.process.kill()
        node.process.wait()
    with started("--ephemeral", env=place) as node:
        assert not folder.exists()
        node.stop()
    assert not list(tmp_path.iterdir())
