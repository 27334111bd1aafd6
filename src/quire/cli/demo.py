"""`quire demo`: makers of events to try pipelines on."""

import click

from quire.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "shop": Entry("quire.cli.demo_shop:shop", "Send what happens in a shop: views, carts, purchases."),
    "inventory": Entry("quire.cli.demo_inventory:inventory", "Send what happens to a stock: shipments and orders."),
}


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    epilog="""\b
Examples:
  quire demo shop                             100 events a second, until Ctrl-C
  quire demo shop --events 10000 --rate 0     as fast as they are taken""",
)
def demo() -> None:
    """Send made-up events, to try pipelines on."""
