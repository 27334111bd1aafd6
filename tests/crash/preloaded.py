"""Libraries that replace functions of the C library in a node, compiled when a test first needs them."""

import atexit
import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest


@functools.cache
def preloaded(source: Path) -> Path:
    """The library for LD_PRELOAD, compiled once per process; skips the test where that is not possible."""
    if not sys.platform.startswith("linux"):
        pytest.skip(f"{source.name} is for Linux")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler here")
    folder = Path(tempfile.mkdtemp(prefix="quire-preloaded-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = folder / f"{source.stem}.so"
    options = ["-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"]
    subprocess.run([compiler, *options, str(source), "-o", str(library), "-ldl", "-lpthread"], check=True)
    return library
