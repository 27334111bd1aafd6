"""A program of examples/ as a process: it is started, read, and stopped or killed."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.wire.clients import WAIT_S

EXAMPLES = Path(__file__).parents[2] / "examples"


class RunningExample:
    """Kills it at the end of the block, if it still runs."""

    def __init__(self, name: str, *arguments: str) -> None:
        command = [sys.executable, str(EXAMPLES / name), *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.kill()

    def lines(self, count: int) -> list[str]:
        """The next lines that it prints."""
        assert self._process.stdout is not None
        return [self._process.stdout.readline().rstrip("\n") for _ in range(count)]

    def complaint(self) -> str:
        """The next line on its standard error."""
        assert self._process.stderr is not None
        return self._process.stderr.readline()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kills it with SIGKILL: it prints nothing, and finishes nothing."""
        if self._process.stdout is not None and not self._process.stdout.closed:
            self._process.kill()
            self._process.communicate(timeout=WAIT_S)

    def stop(self) -> None:
        """Stops it, and checks that it printed no error."""
        assert self.terminate() == ""

    def terminate(self) -> str:
        """Stops it, and returns the errors that it printed."""
        self._process.terminate()
        _, errors = self._process.communicate(timeout=WAIT_S)
        assert self._process.returncode == 0
        return errors
