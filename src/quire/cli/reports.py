"""What came of a command that was given several names: a line for each, and the exit code of the first failure."""

from collections.abc import Sequence

import click

from quire.cli.failures import explain, sentence
from quire.cli.output import print_json
from quire.cli.terminal import echo
from quire.protocol.errors import ApiError

Outcome = tuple[str, str | ApiError, dict[str, object]]


def report(outcomes: Sequence[Outcome], as_json: bool) -> None:
    """Prints every outcome; failures go to standard error, and the first of them decides the exit code."""
    failures = [(name, result) for name, result, _ in outcomes if isinstance(result, ApiError)]
    if as_json:
        print_json(
            [
                {"name": name, **details}
                | ({"error": result.code.name, "message": str(result)} if isinstance(result, ApiError) else {})
                for name, result, details in outcomes
            ]
        )
    for name, result, _ in outcomes:
        if isinstance(result, ApiError):
            if len(outcomes) > 1 or as_json:
                echo(f"quire: {name}: {sentence(result, name)}", err=True)
        elif not as_json:
            echo(f"{name}: {result}")
    if failures:
        name, error = failures[0]
        failure = explain(error, name)
        if len(outcomes) > 1 or as_json:
            raise click.exceptions.Exit(failure.exit_code)
        raise failure
