"""Parsing, help and errors of `quire-samples`, without a cluster."""

import shlex

import click
import pytest
from click.testing import CliRunner, Result

from quire_samples.main import COMMANDS, samples
from tests.cli.command import every_command, every_epilog, examples_in


def run(*arguments: str) -> Result:
    return CliRunner().invoke(samples, arguments, prog_name="quire-samples")


EXAMPLES = list(dict.fromkeys(example for text in every_epilog(samples) for example in examples_in(text)))


@pytest.mark.parametrize("command", list(every_command(samples, COMMANDS)), ids=" ".join)
def test_every_command_explains_itself_with_an_example(command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: quire-samples {' '.join(command)}")
    assert "Example" in result.output


def test_the_root_names_every_command_and_the_version() -> None:
    assert all(name in run("--help").output for name in COMMANDS)
    assert run("--version").output.startswith("quire-samples ")


def test_examples_are_found() -> None:
    assert len(EXAMPLES) > 10
    assert "quire-samples inventory process" in EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_parses(example: str) -> None:
    _, *arguments = shlex.split(example)
    found: click.Command = samples
    context = click.Context(samples)
    while isinstance(found, click.Group):
        _, below, arguments = found.resolve_command(context, arguments)
        assert below is not None
        found = below
    found.make_context(found.name, arguments)


def test_wrong_usage_is_answered_with_what_is_allowed() -> None:
    result = run("inventory", "check", "--wait", "-1")
    assert result.exit_code == 2
    assert "'-1' is not a number of at least 0" in result.stderr


def test_a_failure_names_this_command() -> None:
    result = run("shop", "send", "--timeout", "1", "-b", "127.0.0.1:1")
    assert result.exit_code == 3
    assert result.stderr.startswith("quire-samples: ")
