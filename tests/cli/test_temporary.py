"""Folders of killed processes go, and no others."""

import os
import time
from pathlib import Path

import pytest

from quire.cli.temporary import CLUSTER_PREFIX, EPHEMERAL_PREFIX, MIN_AGE_S, hold, sweep
from tests.cli.command import started


def left_over(place: Path, name: str, *, age_s: float = MIN_AGE_S + 10, lock: bool = True) -> Path:
    folder = place / name
    folder.mkdir()
    (folder / "data").write_text("records")
    if lock:
        (folder / ".lock").touch()
    touched = time.time() - age_s
    os.utime(folder, (touched, touched))
    return folder


@pytest.mark.parametrize("prefix", [EPHEMERAL_PREFIX, CLUSTER_PREFIX])
def test_what_nobody_holds_is_removed(prefix: str, tmp_path: Path) -> None:
    folder = left_over(tmp_path, f"{prefix}abcd_123")
    sweep(str(tmp_path))
    assert not folder.exists()


def test_what_may_be_somebodys_stays(tmp_path: Path) -> None:
    held = left_over(tmp_path, f"{CLUSTER_PREFIX}heldheld")
    descriptor = hold(str(held))
    os.utime(held, (0, 0))
    elsewhere = left_over(tmp_path, "elsewhere")
    (tmp_path / f"{CLUSTER_PREFIX}linklink").symlink_to(elsewhere)
    kept = [
        held,
        elsewhere,
        left_over(tmp_path, f"{EPHEMERAL_PREFIX}justmade", age_s=1),
        left_over(tmp_path, f"{EPHEMERAL_PREFIX}unlocked", lock=False),
        left_over(tmp_path, f"{EPHEMERAL_PREFIX}another-name"),
        left_over(tmp_path, "quire-somebody"),
    ]
    sweep(str(tmp_path))
    assert all((folder / "data").exists() for folder in kept)
    os.close(descriptor)
    sweep(str(tmp_path))
    assert not held.exists()


def test_an_ephemeral_node_holds_its_folder_and_the_next_one_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    place = {"TMPDIR": str(tmp_path)}
    with started("--ephemeral", env=place) as node:
        (folder,) = tmp_path.iterdir()
        os.utime(folder, (0, 0))
        sweep(str(tmp_path))
        assert (folder / "meta.properties").exists(), "it is in use"
        node.process.kill()
        node.process.wait()
    os.utime(folder, (0, 0))
    with started("--ephemeral", env=place) as node:
        assert not folder.exists()
        node.stop()
    assert not list(tmp_path.iterdir())
