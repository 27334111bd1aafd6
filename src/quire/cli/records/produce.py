"""`quire produce`: writes lines from standard input or a file as records."""

import os
import selectors
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import click

from quire.cli.name_completion import complete_topics
from quire.cli.records.delivery import deliver, stop_if_failed
from quire.cli.records.line_sender import BadLineError, Send, line_sender
from quire.cli.records.lines import LineSource
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.client.shell_loop import BlockingLoop
from quire.console.failure import EXIT_USAGE, Failure
from quire.console.options import (
    IntRange,
    Setting,
    collect_rarely,
    connect,
    json_option,
    servers_option,
    timeout_option,
)
from quire.console.output import count, print_json
from quire.console.stopping import Stop
from quire.console.terminal import echo
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Compression

BATCH_BYTES = 256 * 1024
BUFFER_BYTES = 8 * 1024 * 1024
"""Records wait in this buffer within their time-out: a larger one would make them late on a slow network."""
ACKS = {"0": 0, "1": 1, "all": -1, "-1": -1}


@click.command(
    epilog="""\b
Examples:
  echo hello | quire produce greetings
  quire produce orders --file orders.txt --compression zstd
  quire produce users --key-separator : --header source=import < users.txt
  tail -f app.log | quire produce logs --quiet"""
)
@click.argument("topic", shell_complete=complete_topics)
@click.option(
    "-f", "--file", "path", type=click.Path(exists=True, dir_okay=False), help="Read this file, with a progress bar."
)
@click.option("-k", "--key-separator", metavar="TEXT", help="Lines are KEY, this separator, VALUE.")
@click.option("--null-marker", metavar="TEXT", help="A key or value that is exactly this is null.")
@click.option("-H", "--header", "headers", type=Setting(), multiple=True, help="Added to every record; repeatable.")
@click.option("-p", "--partition", type=IntRange(min=0), help="Write to this partition only.")
@click.option(
    "-z",
    "--compression",
    type=click.Choice([kind.name.lower() for kind in Compression]),
    default="none",
    show_default=True,
)
@click.option(
    "--acks",
    type=click.Choice(list(ACKS)),
    default="all",
    show_default=True,
    help="Wait for no broker, the leader, or all in-sync replicas (then no record is written twice).",
)
@click.option(
    "-q", "--quiet", is_flag=True, help="Print no progress, no summary, and no note about a topic that is created."
)
@json_option
@servers_option
@partial(timeout_option, meaning="How long each request, and the delivery of each record, may take.")
def produce(
    topic: str,
    path: str | None,
    key_separator: str | None,
    null_marker: str | None,
    headers: Sequence[tuple[str, str]],
    partition: int | None,
    compression: str,
    acks: str,
    quiet: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Write each line of standard input, or of a file, as a record to TOPIC.

    Records without a key are spread over the partitions, batch by batch. A key determines its partition as in Kafka's
    own clients (librdkafka: partitioner=murmur2_random). Lines end with LF or CRLF. The command stops at the first line
    that is not valid; the lines before it are written. A topic that does not exist is created, unless the broker's
    auto.create.topics.enable is false.
    """
    if key_separator == "":
        raise click.UsageError("--key-separator must not be empty")
    collect_rarely()
    config = ProducerConfig(
        acks=ACKS[acks],
        idempotent=acks in ("all", "-1"),
        compression=Compression[compression.upper()],
        batch_bytes=BATCH_BYTES,
        delivery_timeout_ms=timeout_s * 1000,
    )
    with ExitStack() as stack:
        descriptor = _open(path, stack)
        client = stack.enter_context(connect(servers, timeout_s))
        producer = Producer(client.cluster, config)
        existed = _exists(client, topic)
        partitions = client.run(producer.prepare(topic)).partitions
        if not existed and not quiet:
            echo(f"{topic}: created", err=True)
        if partition is not None and partition not in partitions:
            there = f"topic {topic} has no partition {partition}, only 0 to {len(partitions) - 1}"
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, there)
        send = line_sender(
            producer, topic, key_separator, null_marker, [(name, value.encode()) for name, value in headers], partition
        )
        started = time.monotonic()
        # A signal only ends the reading: lines that were read are gone from the pipe, and have to be written.
        stop = Stop()
        woken = stack.enter_context(stop.wakes())
        client.loop.watch(woken, selectors.EVENT_READ, lambda _: client.loop.watch(woken, 0, lambda _: None))
        source = LineSource(client.loop, descriptor, lambda: stop.asked)
        advance = _progress(stack, path, quiet)
        refused = _pump(source, client.loop, producer, send, advance, stop)
        deliver(client.loop, producer, stop)
        seconds = time.monotonic() - started
    if refused is not None:
        written = (
            "1 record before it was"
            if producer.delivered_records == 1
            else (f"{producer.delivered_records} records before it were")
        )
        raise Failure(f"{_location(path, refused.number)}: {refused}; {written} written.")
    if as_json:
        print_json(
            {
                "topic": topic,
                "created": not existed,
                "records": producer.delivered_records,
                "seconds": round(seconds, 3),
            }
        )
    elif not quiet:
        rate = producer.delivered_records / max(seconds, 1e-9)
        echo(f"{count(producer.delivered_records, 'record')} in {seconds:.2f} s ({rate:,.0f}/s)", err=True)


def _exists(client: BlockingClient, topic: str) -> bool:
    """Whether writing to the topic will not create it: a name with a typing error becomes a topic too."""
    client.run(client.cluster.refresh([topic]))
    known = client.cluster.metadata.topics.get(topic)
    return known is not None and known.error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _open(path: str | None, stack: ExitStack) -> int:
    if path is None:
        if sys.stdin is None:
            raise Failure("standard input is closed; pipe lines in, or name a file with --file.", EXIT_USAGE)
        if sys.stdin.isatty():
            echo("Each line becomes a record; Ctrl-D ends.", err=True)
        return sys.stdin.fileno()
    descriptor = os.open(path, os.O_RDONLY)
    stack.callback(os.close, descriptor)
    return descriptor


def _progress(stack: ExitStack, path: str | None, quiet: bool) -> Callable[[int], None]:
    """A progress bar on standard error, for files and at a terminal only."""
    if path is None or quiet or not sys.stderr.isatty():
        return lambda size: None
    bar = click.progressbar(length=os.path.getsize(path), label=os.path.basename(path), file=sys.stderr)
    return stack.enter_context(bar).update


def _pump(
    source: LineSource, loop: BlockingLoop, producer: Producer, send: Send, advance: Callable[[int], None], stop: Stop
) -> BadLineError | None:
    """Sends lines up to the first one that is not valid, and returns the error for that line."""
    bytes_before = lines_before = 0
    while (lines := source.read()) is not None:
        try:
            send(lines)
        except BadLineError as error:
            error.number += lines_before
            return error
        lines_before += len(lines)
        loop.run_once(0)
        while producer.buffered_bytes > BUFFER_BYTES and not stop.asked:
            loop.run_once(1000)
        if not stop.asked:
            stop_if_failed(producer, stop)
        advance(source.bytes_read - bytes_before)
        bytes_before = source.bytes_read
    return None


def _location(path: str | None, number: int) -> str:
    return f"line {number} of standard input" if path is None else f"{path} line {number}"
