"""`quire produce`: lines from standard input or a file become records."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import click

from quire.cli.failures import explain
from quire.cli.lazy import EXIT_USAGE, Failure
from quire.cli.line_sender import BadLineError, Send, line_sender
from quire.cli.lines import LineSource
from quire.cli.options import IntRange, Setting, cluster_options, collect_rarely, connect, json_option
from quire.cli.output import count, print_json
from quire.cli.terminal import echo
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_loop import BlockingLoop
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Compression

BATCH_BYTES = 256 * 1024
BUFFER_BYTES = 32 * 1024 * 1024
ACKS = {"0": 0, "1": 1, "all": -1, "-1": -1}


@click.command(
    epilog="""\b
Examples:
  echo hello | quire produce greetings
  quire produce orders --file orders.txt --compression zstd
  quire produce users --key-separator : --header source=import < users.txt
  tail -f app.log | quire produce logs --quiet"""
)
@click.argument("topic")
@click.option("-f", "--file", "path", type=click.Path(exists=True, dir_okay=False), help="Read a file, with progress.")
@click.option("-k", "--key-separator", metavar="TEXT", help="Lines are KEY, this, VALUE.")
@click.option("--null-marker", metavar="TEXT", help="A key or value that is exactly this is null.")
@click.option("-H", "--header", "headers", type=Setting(), multiple=True, help="Goes with every record; repeatable.")
@click.option("-p", "--partition", type=IntRange(min=0), help="Only this partition; else by key, or in turn.")
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
    help="Wait for nobody, the leader, or all replicas in sync (then no record comes twice).",
)
@click.option("-q", "--quiet", is_flag=True, help="Neither progress nor summary.")
@json_option
@cluster_options
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

    Records without a key go to one partition after the other, batch by batch; a key decides its partition as in
    Kafka's own clients (librdkafka's do the same with partitioner=murmur2_random). Lines end with LF or CRLF. One that
    cannot be taken ends it; those before it are written. A topic that is not there is created, unless the broker's
    auto.create.topics.enable forbids it.
    """
    if key_separator == "":
        raise click.UsageError("--key-separator must not be empty")
    collect_rarely()
    config = ProducerConfig(
        acks=ACKS[acks],
        idempotent=acks in ("all", "-1"),
        compression=Compression[compression.upper()],
        batch_bytes=BATCH_BYTES,
        delivery_timeout_ms=timeout_s * 4000,
    )
    with ExitStack() as stack:
        descriptor = _open(path, stack)
        client = stack.enter_context(connect(servers, timeout_s))
        producer = Producer(client.cluster, config)
        partitions = client.run(producer.prepare(topic)).partitions
        if partition is not None and partition not in partitions:
            there = f"topic {topic} has no partition {partition}, only 0 to {len(partitions) - 1}"
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, there)
        send = line_sender(
            producer, topic, key_separator, null_marker, [(name, value.encode()) for name, value in headers], partition
        )
        started = time.monotonic()
        source = LineSource(client.loop, descriptor)
        advance = _progress(stack, path, quiet)
        refused = _pump(source, client.loop, producer, send, advance)
        client.loop.run_until(producer.flush())
        seconds = time.monotonic() - started
    _stop_if_failed(producer)
    if refused is not None:
        written = (
            "1 record before it was"
            if producer.delivered_records == 1
            else (f"{producer.delivered_records} records before it were")
        )
        raise Failure(f"{_place(path, refused.number)}: {refused}; {written} written.")
    if as_json:
        print_json({"topic": topic, "records": producer.delivered_records, "seconds": round(seconds, 3)})
    elif not quiet:
        rate = producer.delivered_records / max(seconds, 1e-9)
        echo(f"{count(producer.delivered_records, 'record')} in {seconds:.2f} s ({rate:,.0f}/s)", err=True)


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
    """A bar on standard error for files, where a person can see it."""
    if path is None or quiet or not sys.stderr.isatty():
        return lambda size: None
    bar = click.progressbar(length=os.path.getsize(path), label=os.path.basename(path), file=sys.stderr)
    return stack.enter_context(bar).update


def _pump(
    source: LineSource, loop: BlockingLoop, producer: Producer, send: Send, advance: Callable[[int], None]
) -> BadLineError | None:
    """Sends every line, up to the first that cannot be taken; that one is returned."""
    bytes_before = lines_before = 0
    while (lines := source.read()) is not None:
        try:
            send(lines)
        except BadLineError as error:
            error.number += lines_before
            return error
        lines_before += len(lines)
        loop.run_once(0)
        while producer.buffered_bytes > BUFFER_BYTES:
            loop.run_once(1000)
        _stop_if_failed(producer)
        advance(source.bytes_read - bytes_before)
        bytes_before = source.bytes_read
    return None


def _place(path: str | None, number: int) -> str:
    return f"line {number} of standard input" if path is None else f"{path} line {number}"


def _stop_if_failed(producer: Producer) -> None:
    if producer.first_error is not None:
        failure = explain(producer.first_error)
        lost, written = producer.failed_records, producer.delivered_records
        raise Failure(
            f"{count(lost, 'record')} {'was' if lost == 1 else 'were'} not delivered and {written:,} "
            f"{'was' if written == 1 else 'were'}: {failure.message}",
            failure.exit_code,
        )
