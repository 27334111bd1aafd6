"""The lines that `make` shows while pip runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.pip_install import progress

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "pip_install.py"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Collecting pyspark", None),
        ("  Downloading pyspark-4.2.0.tar.gz (434.2 MB)\n", "downloading pyspark-4.2.0.tar.gz (434.2 MB)"),
        ("Downloading https://host/simple/lz4-4.4.whl (1.2 MB)\n", "downloading lz4-4.4.whl (1.2 MB)"),
        ("  Downloading lz4-4.4.whl.metadata (3.8 kB)\n", None),
        (
            "  Building editable for quire-log (pyproject.toml): started\n",
            "building quire-log (compiles its inner loops: a minute or two)",
        ),
        ("  Building wheel for pyspark (pyproject.toml): started\n", "building pyspark"),
        ("  Building wheel for pyspark (pyproject.toml): finished with status 'done'\n", None),
        ("Installing collected packages: lz4, pyspark\n", "installing 2 packages"),
    ],
)
def test_a_line_of_pip_becomes_a_line_of_progress_or_none(line: str, shown: str | None) -> None:
    assert progress(line) == shown


def test_the_whole_output_of_pip_follows_when_it_fails() -> None:
    arguments = [sys.executable, "install", "--no-index", "no-such-package-at-all"]
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "no-such-package-at-all" in done.stderr
