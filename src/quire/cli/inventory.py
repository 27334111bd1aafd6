"""`quire inventory`: the processor of an inventory, and the check that all that is known of it agrees."""

import click

from quire.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "process": Entry("quire.cli.inventory_process:process", "Carry out the commands on inventory-commands, each once."),
    "check": Entry("quire.cli.inventory_check:check", "Compare the view, the history and the lake, item by item."),
}


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    epilog="""\b
Examples:
  quire inventory process                  in one terminal,
  quire demo inventory                     in another: commands to carry out,
  quire view inventory                     in a third: the stock over HTTP
  quire inventory check --lake ./quire-pipelines/lake/inventory/events""",
)
def inventory() -> None:
    """An inventory that can be audited: carry commands out, and check that what is known of it agrees."""
