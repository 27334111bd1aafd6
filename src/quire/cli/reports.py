"""The results of a command with several names: a line for each, and the exit code of the first failure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from quire.console.explain import explain
from quire.console.failure import Failure, fail_with_all
from quire.console.output import print_json
from quire.console.terminal import echo, echo_failure
from quire.protocol.errors import ApiError


class NameResult(NamedTuple):
    """What the command did to one name: a few words, or the error; and the details for JSON."""

    name: str
    result: str | ApiError
    details: dict[str, object]


def report(results: Sequence[NameResult], as_json: bool, explained: Mapping[str, Failure] | None = None) -> None:
    """Prints every result. Failures go to standard error, and the first one decides the exit code.

    `explained` has the failures of names for which the caller knows more than the error says.
    """
    failures = {name: explain(result, name) for name, result, _ in results if isinstance(result, ApiError)}
    failures |= explained or {}
    if as_json:
        print_json(
            [
                {"name": name, **details}
                | ({"error": result.code.name, "message": str(result)} if isinstance(result, ApiError) else {})
                for name, result, details in results
            ]
        )
    for name, result, _ in results:
        if isinstance(result, ApiError):
            if len(results) > 1 or as_json:
                echo_failure("quire", f"{name}: {failures[name].message}")
        elif not as_json:
            echo(f"{name}: {result}")
    if failures:
        failure = next(iter(failures.values()))
        if len(results) > 1 or as_json:
            raise click.exceptions.Exit(failure.exit_code)
        raise failure


def fail_for_each(errors: Mapping[str, ApiError]) -> None:
    """Ends the command if there are errors: a line for each name, and the exit code of the first."""
    fail_with_all([explain(error, name) for name, error in errors.items()])
