"""Ctrl-C while Python is still importing a program."""

import signal
import subprocess
import sys
from pathlib import Path

from quire.console import program

INTERRUPTED_WHILE_IMPORTED = "import signal\nsignal.raise_signal(signal.SIGINT)\ndef main(): print('called')\n"
INTERRUPTED_WHEN_CALLED = """
import signal
from quire.console.stopping import term_ends_like_ctrl_c

def main():
    try:
        with term_ends_like_ctrl_c():
            signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("cleaned up")
"""


def run(folder: Path, module: str, before: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "slow_program.py").write_text(module)
    code = f"{before}; from {program.__name__} import run; run('slow_program:main')".removeprefix("; ")
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


def test_ctrl_c_ends_the_import_without_a_traceback(tmp_path: Path) -> None:
    done = run(tmp_path, INTERRUPTED_WHILE_IMPORTED)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_that_the_parent_ignores_stays_ignored(tmp_path: Path) -> None:
    done = run(tmp_path, INTERRUPTED_WHILE_IMPORTED, "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "called\n", "")


def test_a_command_that_runs_cleans_up_after_ctrl_c(tmp_path: Path) -> None:
    for before in ("", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"):
        done = run(tmp_path, INTERRUPTED_WHEN_CALLED, before)
        assert (done.returncode, done.stdout, done.stderr) == (0, "cleaned up\n", "")
