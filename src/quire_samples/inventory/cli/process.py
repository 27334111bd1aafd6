"""`quire-samples inventory process`: runs the processor until it is stopped, replaced, or cannot continue."""

import sys
import time

import click

from quire.console.options import FloatRange, cluster_options, connect, json_option
from quire.console.output import count, print_json
from quire.console.stopping import Stop
from quire.console.terminal import echo, rewrite_line
from quire_samples.inventory.processor import Processor, ProcessorConfig, Tally
from quire_samples.inventory.topics import ARCHIVE_LAG_MS, Topics

SHOWN_EVERY_S = 0.2
HOUR_MS = 60 * 60 * 1000


class _Progress:
    """One line that is rewritten in place, at a terminal."""

    def __init__(self, quiet: bool) -> None:
        self._live = sys.stderr.isatty() and not quiet
        self._shown_s = 0.0

    def show(self, tally: Tally) -> None:
        if self._live and time.monotonic() - self._shown_s >= SHOWN_EVERY_S:
            self._shown_s = time.monotonic()
            rewrite_line(f"{_sum(tally)} ", err=True)

    def end(self) -> None:
        if self._live and self._shown_s:
            echo(err=True)


@click.command(
    epilog="""\b
Examples:
  quire-samples inventory process
  quire-samples inventory process --archive-lag 72    the archive may be three days behind

\b
A second processor takes over, and the first then stops. If a processor ends with exit code 3, because
no broker was reachable for minutes, start it again; it continues where it was."""
)
@click.option("--name", default=ProcessorConfig().name, show_default=True, help="Transactional id and consumer group.")
@click.option("--commands", default=Topics().commands, show_default=True, metavar="TOPIC", help="Commands to execute.")
@click.option("--events", default=Topics().events, show_default=True, metavar="TOPIC", help="Changes of the stock.")
@click.option("--refusals", default=Topics().refusals, show_default=True, metavar="TOPIC", help="Refused commands.")
@click.option(
    "--archive-lag",
    "archive_lag_h",
    type=FloatRange(min=0, min_open=True),
    default=ARCHIVE_LAG_MS // HOUR_MS,
    show_default=True,
    metavar="HOURS",
    help="How far the archive may be behind; events are not compacted before twice this time.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print neither progress nor summary.")
@json_option
@cluster_options
def process(
    name: str,
    commands: str,
    events: str,
    refusals: str,
    archive_lag_h: float,
    quiet: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Execute the commands on inventory-commands, each exactly once, until SIGTERM or Ctrl-C.

    Changes are written to inventory-events, refused commands to inventory-refusals. The processor prints `ready` when
    it has taken over.
    """
    topics = Topics(commands, events, refusals)
    config = ProcessorConfig(topics=topics, name=name, archive_lag_ms=max(1, int(archive_lag_h * HOUR_MS)))
    progress = _Progress(quiet or as_json)
    with connect(servers, timeout_s) as client:
        processor = Processor(client.cluster, config, progress.show)
        client.run(processor.take_over())
        Stop(then=processor.stop)
        if not quiet:
            items = count(len(processor.stock.levels), "item")
            echo(f"ready: {name} executes {commands}, with {items} in stock", err=as_json)
        try:
            client.run(processor.work())
        finally:
            progress.end()
            processor.close()
    tally = processor.tally
    if as_json:
        print_json({"commands": tally.commands, "events": tally.events, "refusals": dict(tally.refusals)})
    elif not quiet:
        echo(_sum(tally))


def _sum(tally: Tally) -> str:
    refused = ", ".join(f"{number:,} {reason}" for reason, number in sorted(tally.refusals.items()))
    return (
        f"{count(tally.commands, 'command')}, {count(tally.events, 'event')}, "
        f"{count(tally.refusals.total(), 'refusal')}{f' ({refused})' if refused else ''}"
    )
