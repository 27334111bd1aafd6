"""`quire consume`: reads a topic's partitions together, filters records and prints them."""

from collections.abc import Iterable, Sequence

import click

from quire.cli.moments import Moment
from quire.cli.name_completion import complete_groups, complete_topics
from quire.cli.records.consume_group import read_as_member
from quire.cli.records.filters import Condition, InvalidConditionError, build_filter, parse_condition
from quire.cli.records.record_format import Formatter, hex_line, json_line, json_line_with_json_value, text_formatter
from quire.cli.records.record_printer import Printer
from quire.cli.records.time_order import in_order_of_time
from quire.cli.scopes import Scope, in_one_cell, resolve
from quire.client.consumer import BEGINNING, END, Consumer, ConsumerConfig, Start
from quire.client.group_consumer import GroupConsumer
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.console.options import IntRange, cluster_options, collect_rarely, connect, json_values_option
from quire.console.output import count as count_of
from quire.console.terminal import echo, record_output
from quire.protocol.errors import ApiError, ErrorCode

WAIT_MS = 60_000


@click.command(
    epilog="""\b
Examples:
  quire consume orders --from-beginning                   all records, then stop
  quire consume orders --follow                           new records, until Ctrl-C
  quire consume orders --from-timestamp 2026-01-31T12:00:00Z --follow --format json
  quire consume orders --from-offset -10 --partition 3    the last ten records of a partition
  quire consume orders --from-beginning --where 'total>100' --where 'customer.country=CH' --count 5
  quire consume orders --from-beginning --json-values     a JSON object per line, for tools such as jq
  quire consume orders --from-beginning --order time      the partitions merged by timestamp
  quire consume orders --group readers --from-beginning   continue as a group, and commit"""
)
@click.argument("topic", shell_complete=complete_topics)
@click.option("--from-beginning", is_flag=True, help="Start at the first record.")
@click.option("--from-offset", type=int, metavar="N", help="Start at this offset; negative: before the end.")
@click.option("--from-timestamp", type=Moment(), help="Start at this time: milliseconds or ISO 8601.")
@click.option("-F", "--follow", is_flag=True, help="Wait for new records instead of stopping at the end.")
@click.option(
    "-g",
    "--group",
    metavar="NAME",
    shell_complete=complete_groups,
    help="Read as a member of this group, and commit offsets.",
)
@click.option("-n", "--count", type=IntRange(min=1), metavar="N", help="Stop after this number of records.")
@click.option("-p", "--partition", "partitions", type=IntRange(min=0), multiple=True, help="Only these.")
@click.option("--key", "keys", multiple=True, metavar="TEXT", help="Only records with this key; repeatable.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME[=VALUE]", help="Only records with this header; repeatable."
)
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Only JSON values that match PATH=VALUE, or !=, <, >, <=, >=, contains; repeatable.",
)
@click.option("--format", "style", type=click.Choice(["text", "hex", "json"]), help="Output format.  [default: text]")
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@json_values_option
@click.option(
    "--order",
    type=click.Choice(["any", "time"]),
    default="any",
    show_default=True,
    help="time: merge the partitions by timestamp, up to the current end.",
)
@click.option("-k", "--key-separator", metavar="TEXT", help="Print KEY, this, VALUE (text format).")
@click.option("-v", "--verbose", is_flag=True, help="Also print partition, offset, time and headers (text format).")
@click.option("--read-committed", is_flag=True, help="Leave records of open and aborted transactions out.")
@cluster_options
def consume(
    topic: str,
    from_beginning: bool,
    from_offset: int | None,
    from_timestamp: int | None,
    follow: bool,
    group: str | None,
    count: int | None,
    partitions: Sequence[int],
    keys: Sequence[str],
    headers: Sequence[str],
    conditions: Sequence[str],
    style: str | None,
    as_json: bool,
    json_values: bool,
    order: str,
    key_separator: str | None,
    verbose: bool,
    read_committed: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Read TOPIC and print its records, all partitions together.

    Without options, reading starts at the end. It stops at the offsets that were the end when it started, unless
    --follow is given. A member of a group starts at the committed offset; --from-beginning and --from-timestamp
    apply only to partitions without one. It reads the partitions that are assigned to it, and commits what it has
    printed; if it has printed nothing, it commits nothing. It joins a classic group as a classic member, and any other
    with the newer protocol.

    At a terminal, control characters and bytes that are not UTF-8 are printed as escapes, such as \\x1b. To a pipe or a
    file, keys and values are written byte for byte.
    """
    if sum((from_beginning, from_offset is not None, from_timestamp is not None)) > 1:
        raise click.UsageError("give only one of --from-beginning, --from-offset and --from-timestamp")
    if group is not None and (from_offset is not None or partitions):
        raise click.UsageError("--group assigns partitions and offsets itself; omit --partition and --from-offset")
    if group == "":
        raise click.UsageError("--group must not be empty")
    if (as_json or json_values) and style not in (None, "json"):
        flag = "--json" if as_json else "--json-values"
        raise click.UsageError(f"{flag} and --format {style} contradict each other; give only one of them")
    if order == "time" and (follow or group is not None):
        other = "--follow" if follow else "--group"
        raise click.UsageError(f"--order time reads up to the current end and cannot be combined with {other}")
    wanted = build_filter(keys, headers, _conditions(conditions))
    chosen = "json-values" if json_values else "json" if as_json else style or "text"
    formatter = _formatter(chosen, key_separator, verbose)
    collect_rarely()
    with connect(servers, timeout_s) as client:
        topic_partitions = _topic_partitions(client, topic, partitions)
        config = ConsumerConfig(read_committed=read_committed)
        printer = Printer(record_output(), formatter, wanted, count)
        hint: str | None
        if group is not None:
            since = END if from_timestamp is None else Start(timestamp_ms=from_timestamp)
            otherwise = BEGINNING if from_beginning else since
            member = GroupConsumer(client.cluster, group, [topic], config, otherwise)
            new = read_as_member(client, member, printer, follow=follow, read_committed=read_committed)
            hint = _nothing_new(group, topic, new if otherwise is END else [])
        else:
            ends = _offsets(client, topic_partitions, LATEST, read_committed)
            starts = _starts(client, ends, from_beginning, from_offset, from_timestamp)
            if not follow and END in starts.values():
                echo(
                    "Reading starts at the end: add --from-beginning for existing records, --follow for new ones.",
                    err=True,
                )
                return
            if order == "time":
                _read_by_time(client, printer, starts, ends, read_committed)
            else:
                consumer = Consumer(client.cluster, config)
                client.run(consumer.assign(starts))
                _read(client, consumer, printer, None if follow else ends)
            hint = _hidden(client, ends) if read_committed else None
    if hint is not None and wanted is None and not follow and not printer.printed:
        echo(f"{hint}; --follow waits for more.", err=True)
    if wanted is not None and wanted.seen and not wanted.matched:
        not_json = f" ({wanted.not_json:,} were not JSON)" if conditions else ""
        kept = f"; group {group} keeps its offsets" if group is not None else ""
        echo(f"0 of {count_of(wanted.seen, 'record')} matched{not_json}{kept}", err=True)


def _read(client: BlockingClient, consumer: Consumer, printer: Printer, ends: dict[TopicPartition, int] | None) -> None:
    while not printer.full:
        if ends is not None and all(offset >= ends[partition] for partition, offset in consumer.positions.items()):
            return
        client.loop.run_until(consumer.arrival())
        for fetched in consumer.poll():
            printer.show(fetched, None if ends is None else ends[fetched.topic_partition])


def _read_by_time(
    client: BlockingClient,
    printer: Printer,
    starts: dict[TopicPartition, Start],
    ends: dict[TopicPartition, int],
    read_committed: bool,
) -> None:
    try:
        for partition, record in in_order_of_time(client, starts, ends, read_committed=read_committed):
            printer.show_one(partition, record)
            if printer.full:
                break
    finally:
        printer.flush()


def _nothing_new(group: str, topic: str, from_the_end: Sequence[TopicPartition]) -> str:
    """Why a member has printed nothing, and what to do."""
    if from_the_end:
        return (
            f"Group {group} has no committed offset for {in_one_cell(from_the_end)}, so reading starts at the end: "
            "add --from-beginning for existing records"
        )
    return (
        f"Nothing new for group {group}: `quire groups describe {group}` shows its offsets, and `quire groups "
        f"reset-offsets {group} --topic {topic} --to-earliest --execute` has it read all records again"
    )


def _hidden(client: BlockingClient, ends: dict[TopicPartition, int]) -> str | None:
    """Why no record is visible although the log is not empty; None if it is empty."""
    if any(last > ends[partition] for partition, last in _offsets(client, ends, LATEST).items()):
        return "Records are waiting for the end of a transaction: `quire transactions list` shows which are open"
    if any(first < ends[partition] for partition, first in _offsets(client, ends, EARLIEST).items()):
        return "All records belong to aborted transactions, or are before the offset where reading started"
    return None


def _conditions(texts: Sequence[str]) -> list[Condition]:
    try:
        return [parse_condition(text) for text in texts]
    except InvalidConditionError as error:
        raise click.BadParameter(str(error), param_hint="--where") from error


def _formatter(style: str, key_separator: str | None, verbose: bool) -> Formatter:
    if style == "text":
        return text_formatter(key_separator=key_separator, verbose=verbose)
    return {"hex": hex_line, "json": json_line, "json-values": json_line_with_json_value}[style]


def _topic_partitions(client: BlockingClient, topic: str, partitions: Sequence[int]) -> list[TopicPartition]:
    return resolve(client, [Scope(topic, tuple(partitions))])


def _starts(
    client: BlockingClient,
    ends: dict[TopicPartition, int],
    from_beginning: bool,
    from_offset: int | None,
    from_timestamp: int | None,
) -> dict[TopicPartition, Start]:
    if from_beginning:
        return dict.fromkeys(ends, BEGINNING)
    if from_timestamp is not None:
        return dict.fromkeys(ends, Start(timestamp_ms=from_timestamp))
    if from_offset is None:
        return dict.fromkeys(ends, END)
    first = _offsets(client, ends, EARLIEST)
    if len(ends) == 1 and from_offset >= 0:
        ((partition, end),) = ends.items()
        if not first[partition] <= from_offset <= end:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {from_offset} does not exist: {partition} begins at {first[partition]} and ends before {end}",
            )
    # One offset for several partitions: each starts at the nearest offset that it has.
    return {
        partition: Start(offset=max(first[partition], min(end, from_offset if from_offset >= 0 else end + from_offset)))
        for partition, end in ends.items()
    }


def _offsets(
    client: BlockingClient, partitions: Iterable[TopicPartition], at: int, read_committed: bool = False
) -> dict[TopicPartition, int]:
    found = client.run(list_offsets(client.cluster, dict.fromkeys(partitions, at), isolation_level=int(read_committed)))
    return {partition: found[partition].offset for partition in partitions}
