"""`make broker`: starts a node, streams a few thousand records through it, and keeps serving.

The node is a process of its own (`node_child`).
"""

import json
import sys
import time
from collections.abc import Callable

import click

from quire.client.admin.topics import NewTopic, create_topics
from quire.client.consumer import Consumer, ConsumerConfig, Start
from quire.client.errors import ClientError
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.client.producer import Producer
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure
from quire.console.options import FloatRange
from quire.console.terminal import echo, rewrite_line
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Record
from quire_samples.live.node_child import NodeChild
from quire_samples.live.waiting import run_for

TOPIC = "demo"
PARTITIONS = 3
RECORDS = 4000
STEPS = 80
CUSTOMERS = 97
STEP_MS = 25
SHOWN_EVERY = 811

GOODS = ("notebook", "ledger", "sketch book", "diary", "atlas")
CITIES = ("Basel", "Fabriano", "Uppsala", "Kyoto", "Leipzig")


class Progress:
    """One line that is rewritten in place at a terminal; a few lines elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._shown_at = -1

    def show(self, written: int, read: int) -> None:
        bar = ("#" * (30 * read // RECORDS)).ljust(30, ".")
        line = f"  [{bar}] {written:>5,} written  {read:>5,} read back"
        if self._live:
            rewrite_line(line)
        elif read // 1000 > self._shown_at:
            self._shown_at = read // 1000
            echo(line)

    def say(self, line: str) -> None:
        if self._live:
            rewrite_line(line.ljust(70), nl=True)
        else:
            echo(line)

    def end(self) -> None:
        if self._live:
            echo()


def stream(client: BlockingClient, progress: Progress) -> None:
    """Writes orders and reads them back at the same time, then counts."""
    created = client.run(create_topics(client.cluster, [NewTopic(TOPIC, PARTITIONS)]))[TOPIC]
    if isinstance(created, ApiError) and created.code != ErrorCode.TOPIC_ALREADY_EXISTS:
        raise created
    producer = Producer(client.cluster)
    topic = client.run(producer.prepare(TOPIC))
    partitions = [TopicPartition(TOPIC, index) for index in topic.partitions]
    ends = client.run(list_offsets(client.cluster, dict.fromkeys(partitions, LATEST)))
    consumer = Consumer(client.cluster, ConsumerConfig(max_wait_ms=50))
    client.run(consumer.assign({partition: Start(offset=ends[partition].offset) for partition in partitions}))
    before = sum(at.offset for at in ends.values())
    if before:
        echo(f"Topic {TOPIC} still has its {before:,} records from before.")
    read = 0
    for step in range(STEPS):
        for number in range(step * RECORDS // STEPS, (step + 1) * RECORDS // STEPS):
            producer.send(TOPIC, _order(number), key=b"customer-%d" % (number % CUSTOMERS))
        run_for(client, STEP_MS)
        read = _take(consumer, read, progress.say)
        progress.show((step + 1) * RECORDS // STEPS, read)
    client.loop.run_until(producer.flush())
    if producer.first_error is not None:
        raise producer.first_error
    while read < RECORDS:
        client.loop.run_until(consumer.arrival())
        read = _take(consumer, read, progress.say)
        progress.show(RECORDS, read)
    progress.end()
    consumer.close()
    after = sum(
        at.offset for at in client.run(list_offsets(client.cluster, dict.fromkeys(partitions, LATEST))).values()
    )
    if read != RECORDS or after - before != RECORDS:
        raise ClientError(f"{RECORDS} records were written, {read} read back, and the log grew by {after - before}")


def _order(number: int) -> bytes:
    order = {"order": number, "item": GOODS[number % len(GOODS)], "city": CITIES[number % len(CITIES)]}
    return json.dumps(order).encode()


def _take(consumer: Consumer, read: int, say: Callable[[str], None]) -> int:
    for fetched in consumer.poll():
        for record in fetched.records():
            if read % SHOWN_EVERY == 0:
                say(f"  {fetched.topic_partition} @ {record.offset}: {_text(record)}")
            read += 1
    return read


def _text(record: Record) -> str:
    return (record.value or b"").decode()


@click.command(
    epilog="""\b
Examples:
  quire-samples broker                                   until Ctrl-C
  quire-samples broker --seconds 5 --listen 127.0.0.1:9192"""
)
@click.option("--seconds", type=FloatRange(min=0), default=0, help="Stop after this time; 0: at Ctrl-C.")
@click.option("--listen", default="127.0.0.1:9092", show_default=True, metavar="HOST:PORT", help="Of the node.")
@click.option("--data", default="./quire-data", show_default=True, help="Data directory of the node.")
def broker(seconds: float, listen: str, data: str) -> None:
    """Start a node, stream records through it, read them back, and keep serving."""
    try:
        _run(seconds, listen, data)
    except KeyboardInterrupt:  # Ctrl-C is the normal end
        echo("Stopped.")


def _run(seconds: float, listen: str, data: str) -> None:
    started = time.monotonic()
    node = NodeChild(listen, data, again="make broker")
    try:
        address = node.wait_until_ready()
        echo(f"Quire serves {address}, data in {data} (started in {time.monotonic() - started:.2f} s)")
        with BlockingClient(address, client_id="quire-demo") as client:
            stream(client, Progress())
        echo(f"All {RECORDS:,} records were read back, each once and whole.\n")
        echo(f'Connect any Kafka client:  bootstrap.servers = "{address}"')
        echo(f"or look around:            .venv/bin/quire consume {TOPIC} -b {address} --from-beginning -n 5")
        left = max(0.0, seconds - (time.monotonic() - started)) if seconds else None
        how_long = "" if left is None else f"for another {left:.0f} s, or "
        echo(f"It keeps serving {how_long}until Ctrl-C.")
        code = node.wait(left)
        if code is not None:
            raise Failure(f"the node ended by itself with exit code {code}.")
    finally:
        node.stop()
