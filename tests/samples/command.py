"""Runs `quire-samples` as a user does: a process of its own, with its exit code and what it printed."""

import subprocess
import sys

from tests.cli.command import run

SAMPLES = [sys.executable, "-m", "quire_samples"]


def samples(*arguments: str, servers: str = "") -> subprocess.CompletedProcess[bytes]:
    return run([*SAMPLES, *arguments], servers)
