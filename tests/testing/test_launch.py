"""A process that is started through `quire.testing.launch` runs the right program, and does not outlive its parent."""

import os
import subprocess
import sys
import time
from pathlib import Path

LAUNCH = [sys.executable, "-m", "quire.testing.launch"]
PATIENCE_S = 60


def run(*arguments: str, cwd: Path | None = None) -> str:
    command = [*LAUNCH, str(os.getpid()), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout


def is_running(pid: int) -> bool:
    """Whether the process still executes; a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_without_a_module_it_is_the_quire_command() -> None:
    assert run("--version").startswith("quire ")


def test_a_module_runs_as_python_itself_would_run_it(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text("import sys\nprint(__name__, sys.argv[1:], sys.argv[0].endswith('told.py'))\n")
    assert run("-m", "told", "a", "-b", cwd=tmp_path) == "__main__ ['a', '-b'] True\n"


def test_a_module_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    (tmp_path / "lasting.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    parent = (
        "import os, subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-m', 'quire.testing.launch', str(os.getpid()), '-m', 'lasting']).wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", parent], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
    deadline = time.monotonic() + PATIENCE_S
    while is_running(pid):
        assert time.monotonic() < deadline, "the module outlived its parent"
        time.sleep(0.01)
