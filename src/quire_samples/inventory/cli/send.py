"""`quire-samples inventory send`: sends shipments and orders at a given rate, for the processor to execute."""

import random
import time

import click

from quire.console.options import FloatRange, IntRange, cluster_options, connect, json_option
from quire.console.output import count, print_json
from quire.console.stopping import Stop
from quire.console.terminal import echo
from quire_samples.inventory.generator import Mixture, generate
from quire_samples.inventory.topics import Topics, ensure_topics
from quire_samples.paced_sending import Limits, Outgoing, send_paced

BASE_RATE = 100.0


@click.command(
    epilog="""\b
Examples:
  quire-samples inventory send                                 50 commands a second, until Ctrl-C
  quire-samples inventory send --rate 1000 --seconds 60
  quire-samples inventory send --commands 100000 --rate 0 --items 5000 --json"""
)
@click.option("--rate", type=FloatRange(min=0), default=50, show_default=True, help="Commands a second; 0: no limit.")
@click.option("--commands", "number", type=IntRange(min=0), default=0, help="Stop after this number; 0: never.")
@click.option("--seconds", type=FloatRange(min=0), default=0, help="Stop after this time; 0: never.")
@click.option("--items", type=IntRange(min=1), default=50, show_default=True, help="Number of different items.")
@click.option("--seed", type=int, default=1, show_default=True, help="Different seeds, different commands.")
@click.option("--topic", default=Topics().commands, show_default=True, help="Topic to send to.")
@click.option("-q", "--quiet", is_flag=True, help="Print neither progress nor summary.")
@json_option
@cluster_options
def send(
    rate: float,
    number: int,
    seconds: float,
    items: int,
    seed: int,
    topic: str,
    quiet: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Send shipments and orders, keyed by command, to inventory-commands.

    Most can be executed. Some orders exceed the stock, some commands are sent twice, and some are malformed.
    """
    stop = Stop()
    limits = Limits(number, seconds, rate)
    start_ms = time.time_ns() // 1_000_000
    step_ms = int(1000 / (rate or BASE_RATE))
    made = generate(random.Random(seed), f"{seed}-{start_ms}", Mixture(items=items), start_ms, step_ms)
    with connect(servers, timeout_s) as client:
        if topic == Topics().commands:
            client.run(ensure_topics(client.cluster, Topics()))
        sent, elapsed_s = send_paced(
            client,
            [topic],
            limits,
            lambda _: Outgoing(topic, *next(made)),
            lambda sent: f"{count(sent, 'command')} sent",
            stop,
            quiet or as_json,
        )
    if as_json:
        print_json({"commands": sent, "seconds": round(elapsed_s, 3)})
    elif not quiet:
        echo(f"{count(sent, 'command')} in {elapsed_s:.1f} s")
