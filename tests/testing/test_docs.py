"""Every example of docs/testing.md runs in a separate project."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "testing.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHELL = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
PATIENCE_S = 120


def test_every_python_example_passes(tmp_path: Path) -> None:
    for number, block in enumerate(PYTHON):
        (tmp_path / f"test_example_{number}.py").write_text(block)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(PYTHON)} passed" in done.stdout, done.stdout
    assert "rdkafka" not in done.stdout + done.stderr, "a client was still open when its cluster stopped"


def test_every_shell_example_runs_and_leaves_nothing(tmp_path: Path) -> None:
    (folder := tmp_path / "temporary").mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in SHELL:
        done = subprocess.run(
            ["bash", "-e", "-c", f"set -m\n{block}"],
            cwd=tmp_path,
            env=os.environ | {"PATH": path, "TMPDIR": str(folder)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert not list(folder.iterdir())
