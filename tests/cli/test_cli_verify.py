"""`quire verify` on a real directory."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quire.cli.main import quire
from quire.real.disk import RealDisk
from quire.storage.clean_shutdown import write_mark
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


def verify(*arguments: object) -> Result:
    return CliRunner().invoke(quire, ["verify", *map(str, arguments)])


def damage(data: Path) -> Path:
    path = data / "orders-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    return path


def test_an_intact_directory_is_said_to_be_so(data: Path) -> None:
    done = verify(data)
    assert (done.exit_code, "0 findings" in done.output) == (0, True), done.output


def test_a_finding_is_a_line_with_file_and_position_and_exit_code_1(data: Path) -> None:
    path = damage(data)
    done = verify(data)
    assert done.exit_code == 1
    assert f"{path} at position" in done.output.splitlines()[0]


def test_programs_get_json(data: Path) -> None:
    assert json.loads(verify(data, "--json").output) == []
    path = damage(data)
    (finding,) = json.loads(verify(data, "--json").output)
    assert finding["path"] == str(path) and finding["position"] > 0


def test_indexes_that_a_crash_has_left_unwritten_are_summed_up_and_no_failure(data: Path) -> None:
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


def test_what_does_not_exist_has_the_exit_code_for_that_and_a_file_is_called_no_directory(data: Path) -> None:
    done = verify(data / "nowhere")
    assert (done.exit_code, done.stderr) == (4, f"quire: {data}/nowhere does not exist.\n")
    done = verify(data / "meta.properties")
    assert done.exit_code == 1
    assert "meta.properties is not a directory" in done.stderr
