"""`quire demo shop`: sends a shop's events at a given rate, while the shop's own time runs faster than the clock.

Windows of the shop's time close that much sooner. Where the topics have events already, the shop's time goes on after
them: to the pipelines that have read those, everything before would be late.
"""

import json
import random
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType

import click

from quire.cli.options import cluster_options, connect, json_option
from quire.cli.output import count, print_json
from quire.client.admin.topics import NewTopic, create_topics
from quire.client.consumer import Consumer, ConsumerConfig, Start
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.client.producer import Producer
from quire.client.shell_blocking import BlockingClient
from quire.demo.shop_events import TOPICS, ShopEvents
from quire.protocol.errors import ApiError, ErrorCode

TICK_MS = 20.0
AT_ONCE = 500
BUFFER_BYTES = 8 * 1024 * 1024
LOOKED_AT = 10  # so many events at the end of a partition, to find one that tells the time
BASE_RATE = 100.0  # what the shop's time goes by where no rate says how fast events are sent


@dataclass(slots=True)
class Limits:
    """When to stop, and how fast to go; 0 is no limit."""

    events: int
    seconds: float
    rate: float
    speed: float

    def due(self, elapsed_s: float, sent: int) -> int:
        """How many events are to be sent now."""
        wanted = int(elapsed_s * self.rate) + 1 - sent if self.rate else AT_ONCE
        left = self.events - sent if self.events else AT_ONCE
        return max(0, min(wanted, left, AT_ONCE))

    def over(self, elapsed_s: float, sent: int) -> bool:
        return bool((self.events and sent >= self.events) or (self.seconds and elapsed_s >= self.seconds))

    def time_of(self, number: int) -> int:
        """Milliseconds of the shop's time from the first event to this one."""
        return int(number * 1000 * self.speed / (self.rate or BASE_RATE))


class Stop:
    """Set by Ctrl-C and SIGTERM: sending ends in order, with what was sent delivered and counted."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


@click.command(
    epilog="""\b
Examples:
  quire demo shop                                until Ctrl-C, 100 events a second
  quire demo shop --rate 1000 --seconds 60
  quire demo shop --events 100000 --rate 0 --seed 7 --json"""
)
@click.option("--rate", type=click.FloatRange(min=0), default=100, show_default=True, help="Events a second; 0: all.")
@click.option("--events", type=click.IntRange(min=0), default=0, help="Stop after so many; 0: go on.")
@click.option("--seconds", type=click.FloatRange(min=0), default=0, help="Stop after so long; 0: go on.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed, other visitors.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    help="Seconds of the shop's time to a second of the clock (with --rate 0: to 100 events).",
)
@click.option("--partitions", type=click.IntRange(min=1), default=3, show_default=True, help="Of topics created here.")
@click.option("-q", "--quiet", is_flag=True, help="Neither progress nor summary.")
@json_option
@cluster_options
def shop(
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
    """Send what happens in a shop, keyed by user, to product_viewed, add_to_cart and purchase_completed.

    Most events are good; some are bots', late, sent twice, or broken, and the summary says how many of each.
    """
    stop = Stop()
    limits = Limits(events, seconds, rate, speed)
    with connect(servers, timeout_s) as client:
        _create(client, partitions)
        start_ms = max(time.time_ns() // 1_000_000, 1000 + last_event_ms(client, TOPICS))
        made = ShopEvents(random.Random(seed), name=f"{seed}-{start_ms}")
        producer = Producer(client.cluster)
        for topic in TOPICS:
            client.run(producer.prepare(topic))
        elapsed_s = _send(client, producer, made, limits, start_ms, stop, quiet or as_json)
        client.loop.run_until(producer.flush())
        if producer.first_error is not None:
            raise producer.first_error
    sent = sum(made.counts.values())
    if as_json:
        shop_ms = [start_ms, start_ms + limits.time_of(max(0, sent - 1))]
        print_json(
            {
                "events": sent,
                "kinds": {kind.value: number for kind, number in made.counts.items()},
                "seconds": round(elapsed_s, 3),
                "from": _moment(shop_ms[0]),
                "to": _moment(shop_ms[1]),
            }
        )
    elif not quiet:
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in made.counts.items())
        click.echo(f"{count(sent, 'event')} in {elapsed_s:.1f} s: {kinds}")


def _create(client: BlockingClient, partitions: int) -> None:
    wanted = [NewTopic(topic, partitions) for topic in TOPICS]
    for result in client.run(create_topics(client.cluster, wanted)).values():
        if isinstance(result, ApiError) and result.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise result


def _send(
    client: BlockingClient,
    producer: Producer,
    made: ShopEvents,
    limits: Limits,
    start_ms: int,
    stop: Stop,
    quiet: bool,
) -> float:
    """Sends until it is enough; returns for how many seconds it did."""
    started = time.monotonic()
    live = sys.stderr.isatty() and not quiet
    sent = 0
    shown_s = 0.0
    while not stop.asked and not limits.over(elapsed_s := time.monotonic() - started, sent):
        for _ in range(limits.due(elapsed_s, sent)):
            event = made.next(start_ms + limits.time_of(sent))
            producer.send(event.topic, event.value, key=event.key)
            sent += 1
        client.loop.run_once(TICK_MS if limits.rate else 0)
        while producer.buffered_bytes > BUFFER_BYTES and producer.first_error is None:
            client.loop.run_once(TICK_MS)
        if producer.first_error is not None:
            raise producer.first_error
        if live and elapsed_s - shown_s >= 0.2:
            shown_s = elapsed_s
            moment = _moment(start_ms + limits.time_of(sent))
            click.echo(
                f"\r{sent:,} events sent, {sent / elapsed_s:,.0f}/s, in the shop it is {moment} ", nl=False, err=True
            )
    if live:
        click.echo(err=True)
    return time.monotonic() - started


def last_event_ms(client: BlockingClient, topics: Iterable[str]) -> int:
    """The latest time among the last events of each partition, in milliseconds; 0 where there are none."""
    known = client.cluster.metadata.topics
    client.run(client.cluster.refresh(list(topics)))
    places = [TopicPartition(topic, number) for topic in topics for number in known[topic].partitions]
    ends = client.run(list_offsets(client.cluster, dict.fromkeys(places, LATEST)))
    firsts = client.run(list_offsets(client.cluster, dict.fromkeys(places, EARLIEST)))
    starts = {place: max(firsts[place].offset, ends[place].offset - LOOKED_AT) for place in places}
    consumer = Consumer(client.cluster, ConsumerConfig(max_wait_ms=50))
    client.run(consumer.assign({place: Start(offset=start) for place, start in starts.items()}))
    latest_ms = 0
    while any(offset < ends[place].offset for place, offset in consumer.positions.items()):
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
