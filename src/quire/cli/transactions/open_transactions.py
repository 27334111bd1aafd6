"""`quire transactions describe-producers`, `find-hanging` and `abort`: open transactions in partitions.

The leader of a partition knows the open transactions in it, by producer id and first offset. A hanging transaction
blocks read_committed consumers at that offset; `abort` ends it in that one partition.
"""

import sys
from collections.abc import Sequence

import click

from quire.cli.records.record_format import iso_time
from quire.cli.reports import fail_for_each
from quire.cli.scopes import Scope, ScopeType, resolve
from quire.client.admin import hanging_transactions as hanging
from quire.client.admin import partition_producers as admin
from quire.client.admin.hanging_transactions import OpenTransaction
from quire.client.admin.partition_producers import ActiveProducer
from quire.client.admin.topics import describe_topics
from quire.client.metadata import Topic
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.console.explain import sentence
from quire.console.failure import Failure
from quire.console.options import FloatRange, IntRange, cluster_options, connect, json_option
from quire.console.output import Cell, print_json, print_table
from quire.console.terminal import confirm, echo
from quire.protocol.errors import ApiError, ErrorCode

LONGEST_TRANSACTION_S = 900
"""The default of transaction.max.timeout.ms."""

TITLES = ("topic", "partition", "producer id", "epoch", "start offset", "last sequence", "last written")


@click.command(
    epilog="""\b
Examples:
  quire transactions describe-producers orders
  quire transactions describe-producers orders:0,3 --json"""
)
@click.argument("scopes", metavar="TOPIC[:N,N...]...", type=ScopeType(), nargs=-1, required=True)
@json_option
@cluster_options
def describe_producers(scopes: Sequence[Scope], as_json: bool, servers: str, timeout_s: float) -> None:
    """Show the producers of partitions, and the first offset of each open transaction."""
    with connect(servers, timeout_s) as client:
        found = client.run(admin.describe_producers(client.cluster, resolve(client, scopes)))
    known = [
        (topic_partition, producer)
        for topic_partition, producers in found.items()
        if not isinstance(producers, ApiError)
        for producer in producers
    ]
    if as_json:
        print_json([_producer_json(topic_partition, producer) for topic_partition, producer in known])
    elif known:
        print_table(TITLES, [_row(topic_partition, producer) for topic_partition, producer in known])
    else:
        echo("No producer with an id has written recently.", err=True)
    fail_for_each(
        {str(topic_partition): failed for topic_partition, failed in found.items() if isinstance(failed, ApiError)}
    )


@click.command(
    epilog="""\b
Examples:
  quire transactions find-hanging                         in every topic
  quire transactions find-hanging orders:0 users --older-than 3600"""
)
@click.argument("scopes", metavar="[TOPIC[:N,N...]]...", type=ScopeType(), nargs=-1)
@click.option(
    "--older-than",
    "older_than_s",
    type=FloatRange(min=0),
    default=LONGEST_TRANSACTION_S,
    show_default=True,
    metavar="SECONDS",
    help="Only transactions that were idle for this time, which must not be less than the brokers' maximum.",
)
@json_option
@cluster_options
def find_hanging(scopes: Sequence[Scope], older_than_s: float, as_json: bool, servers: str, timeout_s: float) -> None:
    """Find transactions that are open in a partition and that no coordinator will end."""
    with connect(servers, timeout_s) as client:
        topic_partitions = resolve(client, scopes) if scopes else _everything(client)
        found, failures = client.run(
            hanging.find_hanging(client.cluster, topic_partitions, older_than_ms=int(older_than_s * 1000))
        )
    if as_json:
        print_json([_producer_json(*opened) for opened in found])
    elif found:
        print_table(TITLES, [_row(*opened) for opened in found])
        echo("`quire transactions abort TOPIC --partition N --start-offset N` ends one of them.", err=True)
    elif not failures:
        echo("No transaction hangs.", err=True)
    fail_for_each({str(topic_partition): failed for topic_partition, failed in failures.items()})


@click.command(
    epilog="""\b
Example:
  quire transactions abort orders --partition 3 --start-offset 1234 --yes"""
)
@click.argument("topic")
@click.option("-p", "--partition", type=IntRange(min=0), metavar="N", help="Partition with the transaction; required.")
@click.option(
    "--start-offset",
    type=IntRange(min=0),
    metavar="N",
    help="First offset, as find-hanging and describe-producers show it; required.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--force", is_flag=True, help="Even if its coordinator will end it.")
@json_option
@cluster_options
def abort(
    topic: str,
    partition: int | None,
    start_offset: int | None,
    yes: bool,
    force: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Abort a hanging transaction in one partition, so that its records are never read as committed.

    Asks for confirmation at a terminal. A transaction that its coordinator still has open is refused: it
    ends at its time-out at the latest, and aborting a part of it could leave the rest committed.
    `quire transactions force-terminate` aborts the transaction of a transactional id.
    """
    if partition is None or start_offset is None:
        raise click.UsageError(
            "give TOPIC, --partition and --start-offset, as `quire transactions find-hanging` shows them; to abort the "
            f"transaction of a transactional id: `quire transactions force-terminate {topic}`"
        )
    with connect(servers, timeout_s) as client:
        opened = _open_at(client, resolve(client, [Scope(topic, (partition,))])[0], start_offset)
        if not force:
            _check_that_it_hangs(client, opened)
        if not yes and sys.stdin.isatty():
            written = iso_time(opened.producer.last_timestamp_ms)
            confirm(
                f"Abort the transaction of producer {opened.producer.producer_id} in {opened.topic_partition}, "
                f"open since offset {start_offset} and last written to {written}?"
            )
        client.run(admin.abort_transaction(client.cluster, opened.topic_partition, opened.producer))
    if as_json:
        print_json(_producer_json(*opened) | {"aborted": True})
    else:
        producer = opened.producer
        echo(f"{opened.topic_partition}: aborted the transaction of producer {producer.producer_id} at {start_offset}")


def _open_at(client: BlockingClient, topic_partition: TopicPartition, start_offset: int) -> OpenTransaction:
    opened, failures = client.run(hanging.open_transactions(client.cluster, [topic_partition]))
    for failed in failures.values():
        raise failed
    for found in opened:
        if found.start_offset == start_offset:
            return found
    others = ", ".join(str(found.start_offset) for found in opened)
    known = f"there are open transactions at {others}" if opened else "there are no open transactions"
    raise ApiError(
        ErrorCode.RESOURCE_NOT_FOUND, f"no transaction in {topic_partition} starts at offset {start_offset}; {known}"
    )


def _check_that_it_hangs(client: BlockingClient, opened: OpenTransaction) -> None:
    (owner,) = client.run(hanging.find_owners(client.cluster, [opened]))
    if owner.transaction is not None and owner.holds:
        raise Failure(
            f"the transaction does not hang: {owner.transaction.transactional_id} has it open "
            f"({owner.transaction.state}) and it ends after {owner.transaction.timeout_ms / 1000:g} s at the latest; "
            "`quire transactions force-terminate` aborts all of it now, --force only the part in this partition."
        )


def _everything(client: BlockingClient) -> list[TopicPartition]:
    found = client.run(describe_topics(client.cluster))
    for name, topic in found.items():
        if isinstance(topic, ApiError):
            echo(f"quire: {name}: {sentence(topic)}", err=True)
    return [
        TopicPartition(topic.name, partition)
        for topic in found.values()
        if isinstance(topic, Topic)
        for partition in topic.led
    ]


def _row(topic_partition: TopicPartition, producer: ActiveProducer) -> tuple[Cell, ...]:
    return (
        topic_partition.topic,
        topic_partition.partition,
        producer.producer_id,
        producer.producer_epoch,
        producer.transaction_start_offset,
        producer.last_sequence if producer.last_sequence >= 0 else None,
        iso_time(producer.last_timestamp_ms),
    )


def _producer_json(topic_partition: TopicPartition, producer: ActiveProducer) -> dict[str, object]:
    return {
        "topic": topic_partition.topic,
        "partition": topic_partition.partition,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "start_offset": producer.transaction_start_offset,
        "last_sequence": producer.last_sequence,
        "last_timestamp_ms": producer.last_timestamp_ms,
        "coordinator_epoch": producer.coordinator_epoch,
    }
