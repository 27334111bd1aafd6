"""Runs `quire` as a user does: a process of its own, with its exit code and what it printed."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import AnyStr

import click

QUIRE = [sys.executable, "-m", "quire.cli.main"]
PATIENCE_S = 60
EXAMPLE = re.compile(r"^  ((?:[^|\s][^|\n]*\| )?quire(?:-samples)? \S.*?)(?:   .*)?$", re.MULTILINE)


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}
    return plain | dict(changes or {})


def quire(
    *arguments: str, servers: str = "", stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return run([*QUIRE, *arguments], servers, stdin, env)


def run(
    command: Sequence[str], servers: str = "", stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    variables = {"QUIRE_BOOTSTRAP": servers} if servers else {}
    return subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        timeout=PATIENCE_S,
        env=environment(variables | dict(env or {})),
    )


@contextmanager
def killed_at_the_end(process: subprocess.Popen[AnyStr]) -> Iterator[subprocess.Popen[AnyStr]]:
    """The process, which ends with the block.

    Popen's own block waits for it without a limit: a test that fails before it has ended the process would hang.
    """
    with process:
        try:
            yield process
        finally:
            process.kill()


class Started:
    """`quire start`, once it has printed that it is ready."""

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


def examples_in(epilog: str) -> list[str]:
    """The commands that the examples of a --help show."""
    return EXAMPLE.findall(epilog)


def every_epilog(group: click.Group) -> Iterator[str]:
    context = click.Context(group)
    yield group.epilog or ""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from every_epilog(command)
        else:
            yield command.epilog or ""


def command_of(group: click.Group, arguments: list[str]) -> tuple[click.Command, list[str]]:
    """The command that these arguments name, and its own arguments."""
    found: click.Command = group
    while isinstance(found, click.Group):
        if found.invoke_without_command and (not arguments or arguments[0].startswith("-")):
            break
        _, below, arguments = found.resolve_command(click.Context(found), arguments)
        assert below is not None
        found = below
    return found, arguments


def every_command(program: click.Group, names: Iterable[str]) -> Iterator[list[str]]:
    """The words of each command with one of these names, and of the commands below it."""
    context = click.Context(program)
    for name in names:
        command = program.get_command(context, name)
        assert command is not None
        yield [name]
        if isinstance(command, click.Group):
            for below in command.list_commands(context):
                yield [name, below]


def read_to_the_end(terminal: int) -> bytes:
    """What processes wrote to a terminal until the last one closed it, which Linux reports as an error."""
    shown = b""
    with suppress(OSError):
        while chunk := os.read(terminal, 10_000):
            shown += chunk
    return shown
