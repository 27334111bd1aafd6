"""`quire-samples shop send`: sends a shop's events at a given rate, while the shop's time runs faster than the clock.

Windows of the shop's time close sooner in this way. If the topics already hold events, the shop's time continues after
them: earlier events would be late for the pipelines that have read those.
"""

import json
import random
import time
from collections.abc import Iterable
from datetime import UTC, datetime

import click

from quire.client.admin.topics import NewTopic, create_topics
from quire.client.consumer import Consumer, ConsumerConfig, Start
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.console.options import FloatRange, IntRange, cluster_options, connect, json_option
from quire.console.output import count, print_json
from quire.console.stopping import Stop
from quire.console.terminal import echo
from quire.protocol.errors import ApiError, ErrorCode
from quire_samples.paced_sending import Limits, Outgoing, send_paced
from quire_samples.shop.events import TOPICS, ShopEvents

LOOKED_AT = 10  # events at the end of a partition that are searched for one with a time
BASE_RATE = 100.0  # events a second of the shop's time if --rate is 0


@click.command(
    epilog="""\b
Examples:
  quire-samples shop send                                100 events a second, until Ctrl-C
  quire-samples shop send --rate 1000 --seconds 60
  quire-samples shop send --events 100000 --rate 0 --seed 7 --json"""
)
@click.option("--rate", type=FloatRange(min=0), default=100, show_default=True, help="Events a second; 0: no limit.")
@click.option("--events", type=IntRange(min=0), default=0, help="Stop after this number; 0: never.")
@click.option("--seconds", type=FloatRange(min=0), default=0, help="Stop after this time; 0: never.")
@click.option("--seed", type=int, default=1, show_default=True, help="Different seeds, different visitors.")
@click.option(
    "--speed",
    type=FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    help="Seconds of the shop's time per second of the clock (with --rate 0: per 100 events).",
)
@click.option(
    "--partitions", type=IntRange(min=1), default=3, show_default=True, help="Partitions of topics that are created."
)
@click.option("-q", "--quiet", is_flag=True, help="Print neither progress nor summary.")
@json_option
@cluster_options
def send(
    rate: float,
    events: int,
    seconds: float,
    seed: int,
    speed: float,
    partitions: int,
    quiet: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Send a shop's events, keyed by user, to product_viewed, add_to_cart and purchase_completed.

    Most events are good. Some are late, broken, duplicates or from bots; the summary counts each kind.
    """
    stop = Stop()
    event_ms = 1000 * speed / (rate or BASE_RATE)
    with connect(servers, timeout_s) as client:
        _create(client, partitions)
        start_ms = max(time.time_ns() // 1_000_000, 1000 + last_event_ms(client, TOPICS))
        made = ShopEvents(random.Random(seed), name=f"{seed}-{start_ms}")

        def make(number: int) -> Outgoing:
            event = made.next(start_ms + int(number * event_ms))
            return Outgoing(event.topic, event.key, event.value)

        def describe(sent: int) -> str:
            return f"in the shop it is {_moment(start_ms + int(sent * event_ms))}, {count(sent, 'event')} sent"

        limits = Limits(events, seconds, rate)
        sent, elapsed_s = send_paced(client, TOPICS, limits, make, describe, stop, quiet or as_json)
    if as_json:
        print_json(
            {
                "events": sent,
                "kinds": {kind.value: number for kind, number in made.counts.items()},
                "seconds": round(elapsed_s, 3),
                "from": _moment(start_ms),
                "to": _moment(start_ms + int(max(0, sent - 1) * event_ms)),
            }
        )
    elif not quiet:
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in made.counts.items())
        echo(f"{count(sent, 'event')} in {elapsed_s:.1f} s: {kinds}")


def _create(client: BlockingClient, partitions: int) -> None:
    wanted = [NewTopic(topic, partitions) for topic in TOPICS]
    for result in client.run(create_topics(client.cluster, wanted)).values():
        if isinstance(result, ApiError) and result.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise result


def last_event_ms(client: BlockingClient, topics: Iterable[str]) -> int:
    """The latest time among the last events of each partition, in milliseconds; 0 if there are none."""
    known = client.cluster.metadata.topics
    client.run(client.cluster.refresh(list(topics)))
    partitions = [TopicPartition(topic, number) for topic in topics for number in known[topic].partitions]
    ends = client.run(list_offsets(client.cluster, dict.fromkeys(partitions, LATEST)))
    firsts = client.run(list_offsets(client.cluster, dict.fromkeys(partitions, EARLIEST)))
    starts = {partition: max(firsts[partition].offset, ends[partition].offset - LOOKED_AT) for partition in partitions}
    consumer = Consumer(client.cluster, ConsumerConfig(max_wait_ms=50))
    client.run(consumer.assign({partition: Start(offset=start) for partition, start in starts.items()}))
    latest_ms = 0
    while any(offset < ends[partition].offset for partition, offset in consumer.positions.items()):
        client.loop.run_until(consumer.arrival())
        for fetched in consumer.poll():
            latest_ms = max([latest_ms, *(_time_in(record.value) for record in fetched.records())])
    consumer.close()
    return latest_ms


def _time_in(value: bytes | None) -> int:
    try:
        moment = datetime.fromisoformat(json.loads(value or b"")["event_time"])
        return int(moment.timestamp() * 1000)
    except (ValueError, KeyError, TypeError):
        return 0


def _moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
