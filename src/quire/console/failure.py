"""An error that ends a command: one sentence on standard error, and an exit code."""

from collections.abc import Sequence
from typing import Any

import click

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_NOT_FOUND = 4
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Failure(click.ClickException):
    """One sentence for standard error, and the exit code."""

    program = "quire"
    """The command that failed. `RootGroup` sets it, where the name of the running command is known."""

    def __init__(self, sentence: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code  # type: ignore[misc]

    def show(self, file: Any = None) -> None:
        from quire.console.terminal import echo_failure

        echo_failure(self.program, self.message)


def fail_with_all(failures: Sequence[Failure]) -> None:
    """Ends the command if there are failures: a line for each, and the exit code of the first."""
    if not failures:
        return
    for failure in failures[:-1]:
        failure.show()
    raise Failure(failures[-1].message, failures[0].exit_code)
