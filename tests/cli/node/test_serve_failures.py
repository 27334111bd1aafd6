"""What prevents a node from running: one sentence, exit code 1. And what only slows it down."""

from pathlib import Path

import pytest

from quire.cli.node import serve
from tests.cli.command import quire


def start(data: Path) -> str:
    result = quire("start", "--data", str(data), "--listen", "127.0.0.1:0", "--log-level", "error")
    assert result.returncode == 1
    assert result.stdout == b""
    last = result.stderr.decode().splitlines()[-1]
    assert last.startswith("quire: ") and last.endswith(".") and not last.endswith("..")
    assert "Traceback" not in result.stderr.decode()
    return last


def test_a_place_that_cannot_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    assert "cannot be used as a data directory" in start(tmp_path / "file" / "data")


def test_another_nodes_directory(tmp_path: Path) -> None:
    quire("storage", "format", "--data", str(tmp_path), "--node-id", "5")
    before = sorted(tmp_path.rglob("*"))
    assert "belongs to node 5" in start(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_of_another_program_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("chapter 1")
    assert "contains thesis.tex, which does not belong to a data directory" in start(tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "thesis.tex"]


def test_a_directory_that_has_lost_its_description_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    assert "holds orders-0 but no meta.properties" in start(tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "orders-0"]


def test_one_foreign_folder_among_several_leaves_all_of_them_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "notes.txt").touch()
    directories = f"log.dirs={tmp_path}/new,{tmp_path}/theirs"
    result = quire("start", "--set", directories, "--listen", "127.0.0.1:0")
    assert result.returncode == 1 and "contains notes.txt" in result.stderr.decode()
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "theirs", tmp_path / "theirs" / "notes.txt"]


def test_directories_of_two_clusters_stay_as_they_are(tmp_path: Path) -> None:
    for name in ("one", "two"):
        quire("storage", "format", "--data", str(tmp_path / name))
    before = sorted(tmp_path.rglob("*"))
    result = quire("start", "--set", f"log.dirs={tmp_path}/one,{tmp_path}/two", "--listen", "127.0.0.1:0")
    assert result.returncode == 1 and "belongs to cluster" in result.stderr.decode()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_description_of_the_directory(tmp_path: Path) -> None:
    quire("storage", "format", "--data", str(tmp_path))
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert "meta.properties has no" in start(tmp_path)
    assert not (tmp_path / ".lock").exists()


def test_a_directory_without_its_bootstrap_records(tmp_path: Path) -> None:
    quire("storage", "format", "--data", str(tmp_path))
    (tmp_path / "bootstrap.checkpoint").unlink()
    assert "bootstrap.checkpoint" in start(tmp_path)


def test_a_node_whose_loops_are_not_compiled_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    serve.warn_if_interpreted()
    assert not caplog.messages
    monkeypatch.setattr(serve, "native_compiled", lambda: False)
    serve.warn_if_interpreted()
    assert caplog.messages[0].endswith("install a C compiler, then Quire again")
