"""A program of examples/ as a process: started, read, stopped as a person would, or killed."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.wire.clients import WAIT_S

EXAMPLES = Path(__file__).parents[2] / "examples"


class RunningExample:
    """Killed at the end of the block, if it still runs then."""

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
        """The next line that it, or its client, complains with."""
        assert self._process.stderr is not None
        return self._process.stderr.readline()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        """SIGKILL: it says nothing, and finishes nothing."""
        if self._process.stdout is not None and not self._process.stdout.closed:
            self._process.kill()
            self._process.communicate(timeout=WAIT_S)

    def stop(self) -> None:
        """Ends it in order, and makes sure that it has nothing to complain about."""
        assert self.terminate() == ""

    def terminate(self) -> str:
        """Ends it in order; returns what it has complained about."""
        self._process.terminate()
        _, errors = self._process.communicate(timeout=WAIT_S)
        assert self._process.returncode == 0
        return errors
