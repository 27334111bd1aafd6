"""Runs `quire` as a user does: a process of its own, with its exit code and what it printed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import AnyStr

QUIRE = [sys.executable, "-m", "quire.cli.main"]
PATIENCE_S = 60


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}
    return plain | dict(changes or {})


def quire(
    *arguments: str, servers: str = "", stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    variables = {"QUIRE_BOOTSTRAP": servers} if servers else {}
    return subprocess.run(
        [*QUIRE, *arguments],
        input=stdin,
        capture_output=True,
        timeout=PATIENCE_S,
        env=environment(variables | dict(env or {})),
    )


@contextmanager
def killed_at_the_end(process: subprocess.Popen[AnyStr]) -> Iterator[subprocess.Popen[AnyStr]]:
    """The process, which does not outlive the block.

    Popen's own block waits for it without a limit: a test that fails before it has ended the process would hang.
    """
    with process:
        try:
            yield process
        finally:
            process.kill()


class Started:
    """`quire start` that has said it is ready."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdout is not None
        self.first_line = process.stdout.readline().decode()
        self.address = self.first_line.removeprefix("ready ").strip()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit code, the rest of standard output, and standard error."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out.decode(), err.decode()


@contextmanager
def started(*arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Iterator[Started]:
    process = subprocess.Popen(
        [*QUIRE, "start", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(env),
        cwd=cwd,
    )
    try:
        yield Started(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
