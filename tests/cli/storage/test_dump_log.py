"""`quire dump-log` on the files of a real log."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quire.cli.main import quire
from quire.real.disk import RealDisk
from quire.storage import LogConfig
from tests.storage.batches import append, append_values, batch, open_log

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(quire, ["dump-log", *map(str, arguments)])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with one partition of several segments."""
    folder = tmp_path / "data" / "orders-0"
    log = open_log(RealDisk(), CONFIG, folder=str(folder))
    append(log, batch(b"first", producer_id=5, producer_epoch=0, sequence=0))
    append_values(log, *(b"value %d" % number for number in range(9)))
    log.flush()
    log.close()
    log.close_files()
    (tmp_path / "data" / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    (tmp_path / "data" / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 10\n")
    (tmp_path / "data" / ".lock").touch()
    return tmp_path / "data"


def segments(data: Path) -> list[Path]:
    return sorted((data / "orders-0").glob("*.log"))


def test_a_folder_is_shown_file_by_file(data: Path) -> None:
    result = run(data / "orders-0")
    assert result.exit_code == 0, result.output
    heads = [line for line in result.output.splitlines() if line and not line.startswith(" ")]
    assert [head.split("  ")[0] for head in heads if ".log" in head] == [str(path) for path in segments(data)]
    assert len(segments(data)) > 1
    for kind in ("segment", "offset index", "time index", "producers", "leader epochs"):
        assert any(kind in head for head in heads), kind
    assert "value" not in result.output


def test_records_are_shown_when_asked_for(data: Path) -> None:
    result = run("--print-data", *segments(data))
    shown = [line.rpartition("value=")[2] for line in result.output.splitlines() if line.startswith("    | ")]
    assert shown == ["first", *(f"value {number}" for number in range(9))]


def test_json_is_one_object_per_line_with_the_same_records(data: Path) -> None:
    found = [json.loads(line) for line in run("--json", "--print-data", data / "orders-0").stdout.splitlines()]
    records = [each for each in found if each["type"] == "record"]
    assert [each["offset"] for each in records] == list(range(10))
    assert records[0]["value"] == "first"
    assert {each["file"] for each in records} == {str(path) for path in segments(data)}


def test_damage_is_shown_with_file_and_position_and_fails(data: Path) -> None:
    path = segments(data)[1]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    result = run(data / "orders-0")
    assert result.exit_code == 1
    assert f"{path} at position " in result.stderr
    assert "its checksum does not match" in result.stderr
    assert "PROBLEM at position " in result.stdout
    assert str(segments(data)[-1]) in result.stdout, "what comes after a damaged file is still shown"


def test_a_directory_is_shown_with_the_partitions_in_it(data: Path) -> None:
    result = run(data)
    assert result.exit_code == 1
    assert "has no directory.id" in result.stderr
    assert "orders-0\n" in result.stdout  # in the checkpoint
    assert str(segments(data)[0]) in result.stdout


def test_verifying_reports_no_correct_entries(data: Path) -> None:
    result = run("--verify-index-only", data)
    assert result.exit_code == 0, result.output
    assert ".log  " not in result.output and "OFFSET" not in result.output
    assert "compared with the log" in result.output
    index = max((data / "orders-0").glob("*.index"), key=lambda path: path.stat().st_size)
    content = bytearray(index.read_bytes())
    content[7] ^= 1
    index.write_bytes(content)
    broken = run("--verify-index-only", data)
    assert broken.exit_code == 1
    assert f"1 problem found; the first: {index} at position 0" in broken.stderr


def test_a_part_of_a_log_can_be_asked_for(data: Path) -> None:
    result = run("--json", "--print-data", "--from-offset", 8, data / "orders-0")
    assert [json.loads(line)["offset"] for line in result.stdout.splitlines() if '"record"' in line] == [8, 9]
    one_each = run("--json", "--max-bytes", 1, data / "orders-0").stdout.splitlines()
    assert len([line for line in one_each if '"type":"batch"' in line]) == len(segments(data))


def test_the_meaning_of_records_can_be_given(data: Path) -> None:
    assert "not decoded: " in run("--print-data", "--as", "offsets", segments(data)[0]).output
    assert "not decoded: " not in run("--print-data", "--as", "plain", segments(data)[0]).output


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    result = run(tmp_path / "notes.txt")
    assert result.exit_code == 1
    assert "not that of a file in a data directory" in result.stderr
    assert run(tmp_path).exit_code == 0, "in a folder it is left out"
    assert run(tmp_path / "missing.log").exit_code == 4


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_files_that_may_only_be_read_are_shown(data: Path) -> None:
    path = segments(data)[0]
    path.chmod(0o400)
    assert run(path).exit_code == 0


def test_nothing_is_changed(data: Path) -> None:
    def state() -> list[tuple[str, bytes, int]]:
        files = sorted(path for path in data.rglob("*") if path.is_file())
        return [(str(path), path.read_bytes(), path.stat().st_mtime_ns) for path in files]

    before = state()
    run("--print-data", data)
    assert state() == before


def test_a_folder_without_files_of_a_data_directory_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear reader")
    result = run(tmp_path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"There is no file of a data directory in {tmp_path}.\n"
