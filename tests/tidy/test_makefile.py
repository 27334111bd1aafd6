"""Two `make` on a fresh clone set it up once. Python is a script here that only records what it should install."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60

PYTHON = """#!/bin/sh
case "$*" in
    "scripts/new_venv.py "*) mkdir -p .venv/bin && cp pip .venv/bin/python ;;
    *) exec {real} "$@" ;;
esac
"""
PIP = """#!/bin/sh
echo "${*##*check }" >> installed
case "$*" in *'.[spark]') cat go-on >/dev/null ;; esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "src").mkdir()
    for name in ("pyproject.toml", "setup.py", "constraints.txt"):
        (tmp_path / name).touch()
    for name, text in (("python", PYTHON.format(real=sys.executable)), ("pip", PIP)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    os.mkfifo(tmp_path / "go-on")
    return tmp_path


@contextmanager
def make(clone: Path, target: str) -> "Iterator[subprocess.Popen[str]]":
    command = ["make", "PYTHON=./python", target]
    variables = {"PATH": os.environ["PATH"]}  # not the variables of the make that runs these tests
    process = subprocess.Popen(
        command,
        cwd=clone,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=variables,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        end(process)


def end(process: "subprocess.Popen[str]") -> None:
    """Like Ctrl-C at a terminal: interrupts it and everything that it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)


def test_two_at_once_set_up_once_and_the_second_says_that_it_waits(clone: Path) -> None:
    with make(clone, ".venv/.spark") as first:
        assert first.stdout is not None
        while not (line := first.stdout.readline()).startswith("installing Spark"):
            assert line, "make has ended"
        with make(clone, "setup") as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "waiting for another make that is setting up ...\n"
            (clone / "go-on").write_text("")  # opens when the other end is opened for reading
            rest, _ = second.communicate(timeout=PATIENCE_S)
            first.communicate(timeout=PATIENCE_S)
    assert (first.returncode, second.returncode, rest) == (0, 0, "installing what the tests need ...\n")
    wanted = ["--upgrade pip", "-c constraints.txt -e .[spark]", "-c constraints.txt --group dev"]
    assert (clone / "installed").read_text().splitlines() == wanted
    with make(clone, "setup") as third:
        assert third.communicate(timeout=PATIENCE_S)[0] == "make: Nothing to be done for 'setup'.\n"


def test_a_killed_set_up_does_not_block_the_next(clone: Path) -> None:
    with make(clone, ".venv/.spark") as first:
        assert first.stdout is not None
        while not (line := first.stdout.readline()).startswith("installing Spark"):
            assert line, "make has ended"
        end(first)
    assert first.returncode != 0
    with make(clone, ".venv/.installed") as second:
        out, _ = second.communicate(timeout=PATIENCE_S)
    assert (second.returncode, out) == (0, "installing Quire; compiling takes a minute or two ...\n")
