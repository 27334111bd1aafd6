"""`quire partitions`: the group of commands."""

import click

from quire.cli.partitions.elect import elect
from quire.cli.partitions.reassign import reassign
from quire.cli.partitions.status import status
from quire.console.groups import HelpfulGroup


@click.group(
    cls=HelpfulGroup,
    epilog="""\b
Examples:
  quire partitions status
  quire partitions elect --all
  quire partitions reassign --drain 3 --dry-run""",
)
def partitions() -> None:
    """Show partitions, elect leaders, and move replicas."""


partitions.add_command(status)
partitions.add_command(elect)
partitions.add_command(reassign)
