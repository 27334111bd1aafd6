"""`quire consume`: reads a topic's partitions together, filters records and prints them."""

from collections.abc import Iterable, Sequence

import click

from quire.cli.consume_group import read_as_member
from quire.cli.filters import Condition, InvalidConditionError, build_filter, parse_condition
from quire.cli.moments import Moment
from quire.cli.options import IntRange, cluster_options, collect_rarely, connect
from quire.cli.output import count as count_of
from quire.cli.record_format import Formatter, hex_line, json_line, text_formatter
from quire.cli.record_printer import Printer
from quire.cli.terminal import echo, record_output
from quire.client.admin.topics import describe_topics
from quire.client.consumer import BEGINNING, END, Consumer, ConsumerConfig, Start
from quire.client.group_consumer import GroupConsumer
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError, ErrorCode

WAIT_MS = 60_000


@click.command(
    epilog="""\b
Examples:
  quire consume orders --from-beginning                   everything there is, then stop
  quire consume orders --follow                           what comes from now on, until Ctrl-C
  quire consume orders --from-timestamp 2026-01-31T12:00:00Z --follow --format json
  quire consume orders --from-offset -10 --partition 3    the last ten of a partition
  quire consume orders --from-beginning --where 'total>100' --where 'customer.country=CH' --count 5
  quire consume orders --group readers --from-beginning   on from where the group is, and commit"""
)
@click.argument("topic")
@click.option("--from-beginning", is_flag=True, help="Start at the first record there is.")
@click.option("--from-offset", type=int, metavar="N", help="Start at this offset; negative: N before the end.")
@click.option("--from-timestamp", type=Moment(), help="Start at this time: milliseconds or ISO 8601.")
@click.option("-F", "--follow", is_flag=True, help="Wait for more instead of stopping at the end.")
@click.option("-g", "--group", metavar="NAME", help="As a member of this group: share the partitions, commit offsets.")
@click.option("-n", "--count", type=IntRange(min=1), metavar="N", help="Stop after so many records.")
@click.option("-p", "--partition", "partitions", type=IntRange(min=0), multiple=True, help="Only these.")
@click.option("--key", "keys", multiple=True, metavar="TEXT", help="Only records with this key; repeatable.")
@click.option("--header", "headers", multiple=True, metavar="NAME[=VALUE]", help="Only with this header; repeatable.")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Only JSON values for which it holds: PATH=VALUE, also !=, <, >, <=, >=, contains; repeatable.",
)
@click.option("--format", "style", type=click.Choice(["text", "hex", "json"]), help="How to print.  [default: text]")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("-k", "--key-separator", metavar="TEXT", help="Print KEY, this, VALUE (text format).")
@click.option("-v", "--verbose", is_flag=True, help="Partition, offset, time and headers too (text format).")
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
    key_separator: str | None,
    verbose: bool,
    read_committed: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Read TOPIC and print its records, all partitions together.

    Reading starts at the end unless told otherwise, and stops at what was the end when it began unless it follows.
    A member of a group starts where the group has got to, and only where it has committed nothing as told otherwise;
    it reads what the group leaves to it, and commits what was printed.

    At a terminal control characters in records are shown as escapes, such as \\x1b, and so is what is not UTF-8. Into a
    pipe or a file keys and values go as they are, byte for byte.
    """
    if sum((from_beginning, from_offset is not None, from_timestamp is not None)) > 1:
        raise click.UsageError("give only one of --from-beginning, --from-offset and --from-timestamp")
    if group is not None and (from_offset is not None or partitions):
        raise click.UsageError("a group decides by itself about --partition, and --from-offset is for reading alone")
    if as_json and style not in (None, "json"):
        raise click.UsageError(f"--json and --format {style} contradict each other; give only one of them")
    wanted = build_filter(keys, headers, _conditions(conditions))
    formatter = _formatter("json" if as_json else style or "text", key_separator, verbose)
    collect_rarely()
    with connect(servers, timeout_s) as client:
        places = _places(client, topic, partitions)
        config = ConsumerConfig(read_committed=read_committed)
        printer = Printer(record_output(), formatter, wanted, count)
        hint: str | None
        if group is not None:
            since = END if from_timestamp is None else Start(timestamp_ms=from_timestamp)
            otherwise = BEGINNING if from_beginning else since
            member = GroupConsumer(client.cluster, group, [topic], config, otherwise)
            read_as_member(client, member, printer, follow=follow, read_committed=read_committed)
            hint = _nothing_new(group, begins_at_end=otherwise is END)
        else:
            ends = _offsets(client, places, LATEST, read_committed)
            starts = _starts(client, ends, from_beginning, from_offset, from_timestamp)
            if not follow and END in starts.values():
                echo(
                    "Reading starts at the end: add --from-beginning for what is there, --follow for what comes.",
                    err=True,
                )
                return
            consumer = Consumer(client.cluster, config)
            client.run(consumer.assign(starts))
            _read(client, consumer, printer, None if follow else ends)
            hint = _hidden(client, ends) if read_committed else None
    if hint is not None and wanted is None and not follow and not printer.printed:
        echo(f"{hint}; --follow waits for more.", err=True)
    if wanted is not None and wanted.seen and not wanted.matched:
        not_json = f" ({wanted.not_json:,} were not JSON)" if conditions else ""
        echo(f"0 of {count_of(wanted.seen, 'record')} matched{not_json}", err=True)


def _read(client: BlockingClient, consumer: Consumer, printer: Printer, ends: dict[TopicPartition, int] | None) -> None:
    while not printer.full:
        if ends is not None and all(offset >= ends[place] for place, offset in consumer.positions.items()):
            return
        client.loop.run_until(consumer.arrival())
        for fetched in consumer.poll():
            printer.show(fetched, None if ends is None else ends[fetched.place])


def _nothing_new(group: str, *, begins_at_end: bool) -> str:
    where = f"`quire groups describe {group}` shows where it is"
    if begins_at_end:
        where += "; where it has committed nothing it begins at the end, or with --from-beginning at the start"
    return f"Nothing new for group {group}: {where}"


def _hidden(client: BlockingClient, ends: dict[TopicPartition, int]) -> str | None:
    """Why nobody sees what is there, if something is."""
    if any(last > ends[place] for place, last in _offsets(client, ends, LATEST).items()):
        return "Records are waiting for the end of a transaction: `quire transactions list` shows which are open"
    if any(first < ends[place] for place, first in _offsets(client, ends, EARLIEST).items()):
        return "All records there are belong to transactions that were aborted, or come before where reading began"
    return None


def _conditions(texts: Sequence[str]) -> list[Condition]:
    try:
        return [parse_condition(text) for text in texts]
    except InvalidConditionError as error:
        raise click.BadParameter(str(error), param_hint="--where") from error


def _formatter(style: str, key_separator: str | None, verbose: bool) -> Formatter:
    if style == "text":
        return text_formatter(key_separator=key_separator, verbose=verbose)
    return hex_line if style == "hex" else json_line


def _places(client: BlockingClient, topic: str, partitions: Sequence[int]) -> list[TopicPartition]:
    found = client.run(describe_topics(client.cluster, [topic]))[topic]
    if isinstance(found, ApiError):
        raise found
    for partition in partitions:
        if partition not in found.partitions:
            last = len(found.partitions) - 1
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} has no partition {partition}, only 0 to {last}"
            )
    return [TopicPartition(topic, partition) for partition in partitions or found.partitions]


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
        ((place, end),) = ends.items()
        if not first[place] <= from_offset <= end:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {from_offset} is not there: {place} begins at {first[place]} and ends before {end}",
            )
    # One number for several partitions of different lengths: each begins as near to it as it can.
    return {
        place: Start(offset=max(first[place], min(end, from_offset if from_offset >= 0 else end + from_offset)))
        for place, end in ends.items()
    }


def _offsets(
    client: BlockingClient, places: Iterable[TopicPartition], at: int, read_committed: bool = False
) -> dict[TopicPartition, int]:
    found = client.run(list_offsets(client.cluster, dict.fromkeys(places, at), isolation_level=int(read_committed)))
    return {place: found[place].offset for place in places}
