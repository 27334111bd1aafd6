"""A process that a live demonstration starts: a `quire` command, or a Python module given as `-m some.module`."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from quire.console.failure import Failure

CHILD_PATIENCE_S = 60.0
KILLED_PATIENCE_S = 3.0


class Child:
    """A child process. Ctrl-C does not reach it, and it ends when this process does."""

    def __init__(self, name: str, command: Sequence[str], log: str) -> None:
        self.name = name
        self._log = log
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "quire.testing.launch", str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def check(self) -> None:
        if (code := self.process.poll()) is not None:
            raise Failure(f"{self.name} ended by itself with exit code {code}: {self.last_words()}")

    def stop(self, patience_s: float = CHILD_PATIENCE_S) -> str:
        """Sends SIGTERM, and SIGKILL if that is not enough; returns what the process printed."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            out, _ = self.process.communicate(timeout=patience_s)
            return out.decode(errors="replace")
        except subprocess.TimeoutExpired:
            self.kill()
            return ""

    def kill(self) -> None:
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):  # Spark holds the same standard output, and must have ended too
            self.process.communicate(timeout=KILLED_PATIENCE_S)

    def last_words(self) -> str:
        with open(self._log, encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
        return next((text for text in reversed(lines) if text.strip()), f"{self._log} is empty")
