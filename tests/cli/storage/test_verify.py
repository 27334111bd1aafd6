"""`quire verify` on a real directory."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quire.cli.main import quire
from quire.console.explain import explain
from quire.real.disk import RealDisk
from quire.storage.directory.clean_shutdown import write_mark
from tests.storage.batches import append_values, open_log


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    done = CliRunner().invoke(quire, ["storage", "format", "--data", str(folder)])
    assert done.exit_code == 0, done.output
    log = open_log(RealDisk(), folder=str(folder / "orders-0"))
    append_values(log, b"one", b"two", b"three")
    log.close()
    return folder


@pytest.fixture
def visible(data: Path) -> Iterator[Path]:
    """The same in a folder that every user may read: pytest's folders are private to their user."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        moved = Path(shutil.move(data, Path(folder) / "data"))
        (moved / ".lock").touch()
        yield moved
        for path in everything_in(moved):
            path.chmod(0o755)


def verify(*arguments: object) -> Result:
    return CliRunner().invoke(quire, ["verify", *map(str, arguments)])


@contextmanager
def without_roots_rights() -> Iterator[None]:
    """Root may read and write every file: as root, the block runs as another user."""
    user = os.geteuid()
    verify("--help")  # imports what the user may not be able to read
    explain(PermissionError(13, "", "/"))
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def everything_in(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.rglob("*")


def damage(data: Path) -> Path:
    path = data / "orders-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    return path


def test_an_intact_directory_is_reported_as_intact(data: Path) -> None:
    done = verify(data)
    assert (done.exit_code, "0 findings" in done.output) == (0, True), done.output


def test_a_finding_is_a_line_with_file_and_position_and_exit_code_1(data: Path) -> None:
    path = damage(data)
    done = verify(data)
    assert done.exit_code == 1
    assert f"{path} at position" in done.output.splitlines()[0]


def test_a_batch_that_is_cut_off_is_one_sentence(data: Path) -> None:
    path = data / "orders-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:5])
    (first, *_) = verify(data).output.splitlines()
    assert first == f"{path} at position 0: A record batch needs at least 61 bytes, 5 are there; offset 0, 5 bytes"


def test_programs_get_json(data: Path) -> None:
    assert json.loads(verify(data, "--json").output) == []
    path = damage(data)
    (finding,) = json.loads(verify(data, "--json").output)
    assert finding["path"] == str(path) and finding["position"] > 0


def test_indexes_left_unwritten_by_a_crash_are_counted_and_are_not_a_failure(data: Path) -> None:
    for path in (data / "orders-0").glob("*index"):
        path.unlink()
    done = verify(data)
    assert (done.exit_code, done.stdout.count("\n")) == (0, 1), done.output
    assert "2 files beside logs (indexes) will be rebuilt at the next start" in done.stderr
    assert json.loads(verify(data, "--json").stdout) == []


def test_an_index_that_is_missing_after_a_clean_stop_is_a_finding_that_names_it_once(data: Path) -> None:
    path = data / "orders-0" / f"{0:020d}.index"
    path.unlink()
    write_mark(RealDisk(), str(data), 1)
    done = verify(data)
    assert (done.exit_code, done.stdout) == (1, f"{path}: is missing\n")


def test_a_directory_in_use_is_refused(data: Path) -> None:
    lock = RealDisk().lock(str(data / ".lock"))
    assert lock is not None
    done = verify(data)
    lock.close()
    assert done.exit_code == 1
    assert "in use" in done.output


def test_a_missing_path_has_its_exit_code_and_a_file_is_not_called_a_directory(data: Path) -> None:
    done = verify(data / "nowhere")
    assert (done.exit_code, done.stderr) == (4, f"quire: {data}/nowhere does not exist.\n")
    done = verify(data / "meta.properties")
    assert done.exit_code == 1
    assert "meta.properties is not a directory" in done.stderr


@pytest.mark.parametrize("unreadable", ["", "orders-0", "meta.properties"])
@pytest.mark.parametrize("command", ["verify", "dump-log"])
def test_an_unreadable_path_is_named_with_what_to_do(visible: Path, unreadable: str, command: str) -> None:
    path = visible / unreadable
    path.chmod(0)
    with without_roots_rights():
        done = CliRunner().invoke(quire, [command, str(visible)], prog_name="quire")
    path.chmod(0o755)
    assert done.exit_code == 1, done.output
    (said,) = done.stderr.splitlines()
    assert f"{path} may not be used (permission denied)" in said
    assert f"change the permissions of {path}." in said


def test_a_folder_above_that_may_not_be_read_is_not_a_missing_directory(visible: Path) -> None:
    visible.parent.chmod(0)
    with without_roots_rights():
        done = verify(visible)
    visible.parent.chmod(0o755)
    assert (done.exit_code, "permission denied" in done.stderr) == (1, True)


def test_a_backup_that_may_only_be_read_can_be_verified(visible: Path) -> None:
    for path in everything_in(visible):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with without_roots_rights():
        done = verify(visible)
    assert (done.exit_code, "0 findings" in done.output) == (0, True), done.output
