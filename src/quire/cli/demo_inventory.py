"""`quire demo inventory`: sends shipments and orders at a given rate, for `quire inventory process` to carry out."""

import random
import time

import click

from quire.cli.options import FloatRange, IntRange, cluster_options, connect, json_option
from quire.cli.output import count, print_json
from quire.cli.paced_sending import Limits, Outgoing, send_paced
from quire.cli.stopping import Stop
from quire.cli.terminal import echo
from quire.inventory.generator import Mixture, generate
from quire.inventory.topics import Topics, ensure_topics

BASE_RATE = 100.0


@click.command(
    epilog="""\b
Examples:
  quire demo inventory                                 until Ctrl-C, 50 commands a second
  quire demo inventory --rate 1000 --seconds 60
  quire demo inventory --commands 100000 --rate 0 --items 5000 --json"""
)
@click.option("--rate", type=FloatRange(min=0), default=50, show_default=True, help="Commands a second; 0: all.")
@click.option("--commands", "number", type=IntRange(min=0), default=0, help="Stop after so many; 0: go on.")
@click.option("--seconds", type=FloatRange(min=0), default=0, help="Stop after so long; 0: go on.")
@click.option("--items", type=IntRange(min=1), default=50, show_default=True, help="How many there are.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed, other commands.")
@click.option("--topic", default=Topics().commands, show_default=True, help="Where they are sent.")
@click.option("-q", "--quiet", is_flag=True, help="Neither progress nor summary.")
@json_option
@cluster_options
def inventory(
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

    Most can be carried out; some orders are for more than there is, some commands are sent twice, some are broken.
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
