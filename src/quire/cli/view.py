"""`quire view`: what topics add up to, kept up to date and served over HTTP."""

import click

from quire.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "inventory": Entry("quire.cli.view_inventory:inventory", "Serve the current stock of an inventory."),
}


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    epilog="""\b
Example:
  quire view inventory --listen 127.0.0.1:8090    then: curl 127.0.0.1:8090/items""",
)
def view() -> None:
    """Serve what topics add up to, over HTTP."""
