"""`quire-samples`: the root of the samples' commands, each imported when it is called."""

import click

from quire import __version__
from quire.console.groups import Entry, LazyGroup, RootGroup

SHOP = {
    "send": Entry("quire_samples.shop.send:send", "Send views, carts and purchases at a given rate."),
}

INVENTORY = {
    "process": Entry("quire_samples.inventory.cli.process:process", "Execute the inventory's commands, each once."),
    "send": Entry("quire_samples.inventory.cli.send:send", "Send shipments and orders at a given rate."),
    "view": Entry("quire_samples.inventory.cli.view:view", "Serve the current stock over HTTP."),
    "check": Entry("quire_samples.inventory.cli.check:check", "Compare the view, the history and the lake."),
}

COMMANDS = {
    "shop": Entry("quire_samples.main:shop", "A shop's events, to try pipelines on."),
    "inventory": Entry("quire_samples.main:inventory", "An inventory that can be audited."),
    "live": Entry("quire_samples.live.live:live", "Run both with their pipelines, and watch."),
    "broker": Entry("quire_samples.live.broker:broker", "Run a node and stream records through it."),
}


@click.group(
    cls=RootGroup,
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="quire-samples", message="%(prog)s %(version)s")
def samples() -> None:
    """Sample systems on Quire: a shop, an inventory, and live demonstrations of both."""


@click.group(
    cls=LazyGroup,
    entries=SHOP,
    epilog="""\b
Examples:
  quire-samples shop send                             100 events a second, until Ctrl-C
  quire-samples shop send --events 10000 --rate 0     as fast as the broker accepts them""",
)
def shop() -> None:
    """A shop's events, to try pipelines on."""


@click.group(
    cls=LazyGroup,
    entries=INVENTORY,
    epilog="""\b
Examples:
  quire-samples inventory process          in one terminal
  quire-samples inventory send             in a second: commands to execute
  quire-samples inventory view             in a third: the stock over HTTP
  quire-samples inventory check --lake ./quire-pipelines/lake/inventory/events""",
)
def inventory() -> None:
    """An inventory that can be audited: execute commands, and check that all records of it agree."""


def main() -> None:
    samples(prog_name="quire-samples")


if __name__ == "__main__":
    main()
