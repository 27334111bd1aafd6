"""The tree of commands of `quire`."""

from collections.abc import Iterator

import click

from quire.cli.main import quire as root


def commands(group: click.Group = root, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command below `group` with its full name; groups too, since they may have options."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path}{name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")


def leaves() -> Iterator[tuple[str, click.Command]]:
    return ((name, command) for name, command in commands() if not isinstance(command, click.Group))
