"""`quire demo inventory`: sends shipments and orders at a given rate, for `quire inventory process` to carry out."""

import random
import sys
import time
from collections.abc import Iterator

import click

from quire.cli.demo_shop import BUFFER_BYTES, TICK_MS, Limits, Stop
from quire.cli.options import cluster_options, connect, json_option
from quire.cli.output import count, print_json
from quire.client.producer import Producer
from quire.client.shell_blocking import BlockingClient
from quire.inventory.generator import Mixture, Sent, generate
from quire.inventory.topics import Topics, ensure_topics

BASE_RATE = 100.0


@click.command(
    epilog="""\b
Examples:
  quire demo inventory                                 until Ctrl-C, 50 commands a second
  quire demo inventory --rate 1000 --seconds 60
  quire demo inventory --commands 100000 --rate 0 --items 5000 --json"""
)
@click.option("--rate", type=click.FloatRange(min=0), default=50, show_default=True, help="Commands a second; 0: all.")
@click.option("--commands", "number", type=click.IntRange(min=0), default=0, help="Stop after so many; 0: go on.")
@click.option("--seconds", type=click.FloatRange(min=0), default=0, help="Stop after so long; 0: go on.")
@click.option("--items", type=click.IntRange(min=1), default=50, show_default=True, help="How many there are.")
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
    limits = Limits(number, seconds, rate, speed=1)
    start_ms = time.time_ns() // 1_000_000
    step_ms = int(1000 / (rate or BASE_RATE))
    made = generate(random.Random(seed), f"{seed}-{start_ms}", Mixture(items=items), start_ms, step_ms)
    with connect(servers, timeout_s) as client:
        if topic == Topics().commands:
            client.run(ensure_topics(client.cluster, Topics()))
        producer = Producer(client.cluster)
        client.run(producer.prepare(topic))
        sent, elapsed_s = _send(client, producer, topic, made, limits, stop, quiet or as_json)
        client.loop.run_until(producer.flush())
        if producer.first_error is not None:
            raise producer.first_error
    if as_json:
        print_json({"commands": sent, "seconds": round(elapsed_s, 3)})
    elif not quiet:
        click.echo(f"{count(sent, 'command')} in {elapsed_s:.1f} s")


def _send(
    client: BlockingClient,
    producer: Producer,
    topic: str,
    made: Iterator[Sent],
    limits: Limits,
    stop: Stop,
    quiet: bool,
) -> tuple[int, float]:
    """Sends until it is enough; how many, and in how many seconds."""
    started = time.monotonic()
    live = sys.stderr.isatty() and not quiet
    sent, shown_s = 0, 0.0
    while not stop.asked and not limits.over(elapsed_s := time.monotonic() - started, sent):
        for _ in range(limits.due(elapsed_s, sent)):
            key, value = next(made)
            producer.send(topic, value, key=key)
            sent += 1
        client.loop.run_once(TICK_MS if limits.rate else 0)
        while producer.buffered_bytes > BUFFER_BYTES and producer.first_error is None:
            client.loop.run_once(TICK_MS)
        if producer.first_error is not None:
            raise producer.first_error
        if live and elapsed_s - shown_s >= 0.2:
            shown_s = elapsed_s
            click.echo(f"\r{sent:,} commands sent, {sent / elapsed_s:,.0f}/s ", nl=False, err=True)
    if live:
        click.echo(err=True)
    return sent, time.monotonic() - started
