"""Sends records at a given rate, up to a number of records, for a time, or until it is stopped.

`quire-samples shop send` and `quire-samples inventory send` share it. They differ in the records and in the messages.
"""

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from quire.client.producer import Producer
from quire.client.shell_blocking import BlockingClient
from quire.console.stopping import Stop
from quire.console.terminal import echo, rewrite_line

TICK_MS = 20.0
AT_ONCE = 500
BUFFER_BYTES = 8 * 1024 * 1024
SHOW_EVERY_S = 0.2


@dataclass(slots=True, frozen=True)
class Limits:
    """When to stop, and how fast to send; 0 means no limit."""

    records: int
    seconds: float
    rate: float

    def due(self, elapsed_s: float, sent: int) -> int:
        """The number of records to send now."""
        wanted = int(elapsed_s * self.rate) + 1 - sent if self.rate else AT_ONCE
        left = self.records - sent if self.records else AT_ONCE
        return max(0, min(wanted, left, AT_ONCE))

    def over(self, elapsed_s: float, sent: int) -> bool:
        return bool((self.records and sent >= self.records) or (self.seconds and elapsed_s >= self.seconds))


class Outgoing(NamedTuple):
    topic: str
    key: bytes
    value: bytes | None


def send_paced(
    client: BlockingClient,
    topics: Iterable[str],
    limits: Limits,
    make: Callable[[int], Outgoing],
    describe: Callable[[int], str],
    stop: Stop,
    quiet: bool,
) -> tuple[int, float]:
    """Sends what `make` returns for each number, and waits for delivery. Returns the number and the seconds.

    `describe` words the number of records for the progress line.
    """
    producer = Producer(client.cluster)
    for topic in topics:
        client.run(producer.prepare(topic))
    started = time.monotonic()
    live = sys.stderr.isatty() and not quiet
    sent, shown_s = 0, 0.0
    while not stop.asked and not limits.over(elapsed_s := time.monotonic() - started, sent):
        for _ in range(limits.due(elapsed_s, sent)):
            topic, key, value = make(sent)
            producer.send(topic, value, key=key)
            sent += 1
        client.loop.run_once(TICK_MS if limits.rate else 0)
        _wait_for_room(client, producer)
        if live and elapsed_s - shown_s >= SHOW_EVERY_S:
            shown_s = elapsed_s
            rewrite_line(f"{describe(sent)}, {sent / elapsed_s:,.0f}/s ", err=True)
    if live:
        echo(err=True)
    client.loop.run_until(producer.flush())
    if producer.first_error is not None:
        raise producer.first_error
    return sent, time.monotonic() - started


def _wait_for_room(client: BlockingClient, producer: Producer) -> None:
    while producer.buffered_bytes > BUFFER_BYTES and producer.first_error is None:
        client.loop.run_once(TICK_MS)
    if producer.first_error is not None:
        raise producer.first_error
