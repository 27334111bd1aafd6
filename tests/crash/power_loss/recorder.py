"""The library that records changes, compiled from recorder.c."""

import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

_SOURCE = Path(__file__).parent / "recorder.c"


@functools.cache
def recorder() -> Path:
    """Compiles the library once per process; skips the test where that is not possible."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the recorder of power losses is for Linux")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler here")
    library = Path(tempfile.mkdtemp(prefix="quire-power-")) / "recorder.so"
    options = ["-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"]
    subprocess.run([compiler, *options, str(_SOURCE), "-o", str(library), "-ldl", "-lpthread"], check=True)
    return library
