"""`quire partitions`: the group of commands."""

import click

from quire.cli.partitions.elect import elect
from quire.cli.partitions.status import status
from quire.console.groups import HelpfulGroup


@click.group(
    cls=HelpfulGroup,
    epilog="""\b
Examples:
  quire partitions status
  quire partitions elect --all""",
)
def partitions() -> None:
    """Show partitions, elect leaders, and move replicas."""


partitions.add_command(status)
partitions.add_command(elect)
