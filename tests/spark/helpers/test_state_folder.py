"""What pipelines leave on disk. Without Spark: a checkpoint here is the files that Spark writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quire.spark.pipeline_file import parse_pipeline
from quire.spark.progress import Tally
from quire.spark.state_folder import RunningError, StateFolder, last_offsets, query_id

PIPELINE = parse_pipeline(
    {
        "name": "orders",
        "queries": {
            "one": {"job": "a:b", "sink": {"format": "quire"}},
            "two": {"job": "a:b", "sink": {"delta": "orders/raw"}},
        },
    },
    "orders.yaml",
)


def checkpoint(folder: StateFolder, name: str, identity: str = "an-id") -> Path:
    path = Path(folder.checkpoint(next(query for query in PIPELINE.queries if query.name == name)))
    path.mkdir(parents=True, exist_ok=True)
    (path / "metadata").write_text(json.dumps({"id": identity}))
    return path


def test_one_process_runs_a_pipeline_and_others_are_told_which(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path), PIPELINE)
    assert folder.runner() is None
    folder.hold()
    assert folder.runner() == os.getpid()
    with pytest.raises(RunningError, match=f"orders runs already in process {os.getpid()}"):
        StateFolder(str(tmp_path), PIPELINE).hold()
    folder.release()
    assert folder.runner() is None
    folder.hold()
    folder.release()


def test_a_process_that_was_killed_runs_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, tests.spark.helpers.test_state_folder as t;"
        f"f = t.StateFolder({str(tmp_path)!r}, t.PIPELINE); f.hold(); print('held', flush=True); sys.stdin.read()"
    )
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        assert StateFolder(str(tmp_path), PIPELINE).runner() == process.pid
        process.kill()
    assert StateFolder(str(tmp_path), PIPELINE).runner() is None


def test_tallies_are_those_of_the_checkpoint_they_were_counted_with(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path), PIPELINE)
    checkpoint(folder, "one")
    folder.hold()
    folder.write_tallies({"one": Tally(last_batch=4, rows=9)})
    assert folder.tallies() == {"one": Tally(last_batch=4, rows=9)}
    checkpoint(folder, "one", "another-id")
    assert folder.tallies() == {}
    folder.release()


def test_a_reset_removes_checkpoints_counts_and_tables_and_nothing_else(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path), PIPELINE)
    paths = [checkpoint(folder, "one"), checkpoint(folder, "two"), tmp_path / "lake" / "orders" / "raw"]
    paths[2].mkdir(parents=True)
    other = tmp_path / "lake" / "other"
    other.mkdir()
    folder.write_status({"queries": []})
    assert folder.reset() == [str(path) for path in paths]
    assert not any(path.exists() for path in paths)
    assert other.exists()
    assert folder.status() == {}
    assert folder.reset() == []


def test_offsets_and_id_are_read_from_a_checkpoint_and_missing_ones_are_none(tmp_path: Path) -> None:
    assert query_id(str(tmp_path)) is None
    assert last_offsets(str(tmp_path)) is None
    (tmp_path / "offsets").mkdir()
    assert last_offsets(str(tmp_path)) is None
    for number in (2, 9, 10):
        (tmp_path / "offsets" / str(number)).write_text(f'v1\n{{}}\n{{"orders": {number}}}')
    (tmp_path / "offsets" / ".11.crc").write_text("")
    assert last_offsets(str(tmp_path)) == {"orders": 10}
