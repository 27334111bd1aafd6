"""The files of pipelines on disk. Without Spark: a checkpoint here has the files that Spark writes."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quire.spark.pipeline_file import parse_pipeline
from quire.spark.progress import Tally
from quire.spark.state_folder import RunningError, StateFolder, done_offsets, last_done, last_offsets, query_id

LOOKS = 2_000

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


def test_one_process_runs_a_pipeline_and_others_are_refused_with_its_name(tmp_path: Path) -> None:
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


def test_two_concurrent_readers_do_not_take_each_other_for_the_process_that_was_killed(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path), PIPELINE)
    folder.hold()
    folder.release()  # as after a kill, its process id is still in the file
    assert runners_seen_at_once(folder) == {None}


def test_a_reader_of_the_state_does_not_prevent_a_pipeline_from_starting(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path), PIPELINE)
    folder.hold()
    folder.release()
    looking = threading.Event()
    with ThreadPoolExecutor() as pool:
        looks = pool.submit(lambda: [folder.runner() for _ in iter(looking.is_set, True)])
        try:
            for _ in range(LOOKS):
                starting = StateFolder(str(tmp_path), PIPELINE)
                starting.hold()
                starting.release()
        finally:
            looking.set()
        assert set(looks.result()) <= {None, os.getpid()}


def runners_seen_at_once(folder: StateFolder) -> set[int | None]:
    with ThreadPoolExecutor() as pool:
        looks = [pool.submit(lambda: {folder.runner() for _ in range(LOOKS)}) for _ in range(4)]
    return set().union(*(look.result() for look in looks))


@pytest.mark.parametrize("damaged", [b"", b"{", b"null", b"[1]", b'"\xff"', b'{"one": 1}', b'{"one": {"id": "an-id"}}'])
def test_damaged_counts_are_as_if_nothing_had_been_counted(tmp_path: Path, damaged: bytes) -> None:
    folder = StateFolder(str(tmp_path), PIPELINE)
    checkpoint(folder, "one")
    Path(folder.path, "tallies.json").write_bytes(damaged)
    assert folder.tallies() == {}


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


def test_the_state_of_an_earlier_process_is_not_taken_for_that_of_the_running_one(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path), PIPELINE)
    os.makedirs(folder.path)
    said = {"pid": 17, "queries": [{"name": "one"}], "starting": ["two"]}
    folder.write_status(said)
    assert folder.status_in(17) == folder.status_in(None) == said
    assert folder.status_in(18) == {"pid": 18, "queries": [], "starting": ["one", "two"]}


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
    assert done_offsets(str(tmp_path)) is None
    assert last_done(str(tmp_path)) == -1
    (tmp_path / "commits").mkdir()
    for number in (2, 9):
        (tmp_path / "commits" / str(number)).write_text("v1\n{}")
    assert done_offsets(str(tmp_path)) == {"orders": 9}
