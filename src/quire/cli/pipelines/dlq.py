"""`quire dlq`: lists and shows the records that pipelines could not process. `replay` is in its own file."""

import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import click

from quire.cli.name_completion import complete_topics
from quire.cli.pipelines.dlq_marks import read_marks
from quire.cli.pipelines.dlq_reading import Fate, Letter, Sorter, dead_letter_topics, matches, read_letters
from quire.cli.pipelines.dlq_replay import replay
from quire.cli.records.record_format import iso_time, json_text
from quire.client.metadata import Topic
from quire.client.shell_blocking import BlockingClient
from quire.console.groups import HelpfulGroup
from quire.console.options import IntRange, Pattern, cluster_options, connect, json_option, json_values_option
from quire.console.output import Cell, print_json, print_table
from quire.console.printable import printable
from quire.console.terminal import echo, to_indented_json
from quire.spark.dead_letters import DeadLetter

SHOWN_CHARACTERS = 100
COLUMNS = ("topic", "letters", "waiting", "sent", "passed_over", "error")


@click.group(
    cls=HelpfulGroup,
    epilog="""\b
Examples:
  quire dlq list
  quire dlq show orders
  quire dlq replay orders --dry-run""",
)
def dlq() -> None:
    """Show dead letters, the records that pipelines could not process, and send them back."""


dlq.add_command(replay)


@dlq.command(
    "list",
    epilog="""\b
Examples:
  quire dlq list
  quire dlq list orders --json""",
)
@click.argument("topics", nargs=-1, shell_complete=complete_topics)
@json_option
@cluster_options
def list_letters(topics: Sequence[str], as_json: bool, servers: str, timeout_s: float) -> None:
    """Count dead letters by topic and error.

    WAITING are those that `quire dlq replay` would send back, SENT those that it has sent back. It passes over the
    rest: they have failed three times, their topic does not exist, or they lack the headers of a dead letter.
    """
    with connect(servers, timeout_s) as client:
        rows = [row for topic in dead_letter_topics(client, topics) for row in _counts(client, topic)]
    if as_json:
        print_json([dict(zip(COLUMNS, row, strict=True)) for row in rows])
    elif rows:
        print_table([name.replace("_", " ") for name in COLUMNS], rows)
    else:
        echo("There are no dead-letter topics.", err=True)


def _counts(client: BlockingClient, topic: Topic) -> list[tuple[Cell, ...]]:
    """A row for each error, the most frequent first."""
    sorter = Sorter(client, read_marks(client, topic))
    fates: dict[str, Counter[Fate]] = {}
    for letter in read_letters(client, topic):
        fates.setdefault(letter.error, Counter())[sorter.fate(letter)] += 1
    rows: list[tuple[Cell, ...]] = []
    for error, found in sorted(fates.items(), key=lambda each: -each[1].total()):
        waiting, sent = found[Fate.SENT], found[Fate.SENT_BEFORE]
        rows.append((topic.name, found.total(), waiting, sent, found.total() - waiting - sent, error))
    return rows or [(topic.name, 0, 0, 0, 0, "")]


@dlq.command(
    epilog="""\b
Examples:
  quire dlq show orders
  quire dlq show orders -n 3 --error 'has_an_id' --json
  quire dlq show orders --json-values                     values that are JSON as JSON, for tools such as jq"""
)
@click.argument("topic", shell_complete=complete_topics)
@click.option("-n", "--count", "most", type=IntRange(min=1), default=10, show_default=True, help="Maximum number.")
@click.option("--error", "pattern", type=Pattern(), help="Only those whose error matches.")
@json_option
@json_values_option
@cluster_options
def show(
    topic: str,
    most: int,
    pattern: re.Pattern[str] | None,
    as_json: bool,
    json_values: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Show dead letters of TOPIC (or TOPIC.dlq): the error, the origin and the contents."""
    with connect(servers, timeout_s) as client:
        (letters_topic,) = dead_letter_topics(client, [topic])
        wanted = (letter for letter in read_letters(client, letters_topic) if matches(letter, pattern))
        letters = list(islice(wanted, most))
    if as_json or json_values:
        shown = [_indented(letter, json_values) for letter in letters]
        echo("[\n" + textwrap.indent(",\n".join(shown), "  ") + "\n]" if shown else "[]")
        return
    if not letters:
        echo(f"No dead letter in {letters_topic.name}{'' if pattern is None else ' matches'}.", err=True)
    for letter in letters:
        record, error = letter.record, printable(letter.error)
        echo(f"{letter.topic_partition} offset {record.offset}, {iso_time(record.timestamp)}: {error}")
        if isinstance(letter.why, DeadLetter):
            why = letter.why
            echo(f"  from   {why.topic}-{why.partition} offset {why.offset}, attempt {why.attempt}")
        echo(f"  key    {_text(letter.record.key)}")
        echo(f"  value  {_text(letter.record.value)}")


def _text(content: bytes | None) -> str:
    if content is None:
        return "null"
    text = printable(content.decode(errors="backslashreplace"))
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}... ({len(content):,} bytes)"


def _indented(letter: Letter, json_values: bool) -> str:
    """A JSON object on several lines. A value that is JSON keeps its text: decoding would round numbers."""
    fields = _as_json(letter)
    value = json_text(letter.record.value) if json_values else None
    if value is None:
        return to_indented_json(fields)
    del fields["value"]
    return to_indented_json(fields).removesuffix("\n}") + f',\n  "value": {value}\n}}'


def _as_json(letter: Letter) -> dict[str, object]:
    origin = letter.why._asdict() if isinstance(letter.why, DeadLetter) else {"error": letter.why}
    return {
        "position": {
            "topic": letter.topic_partition.topic,
            "partition": letter.topic_partition.partition,
            "offset": letter.record.offset,
        },
        "timestamp": letter.record.timestamp,
        **{("from_topic" if name == "topic" else name): value for name, value in origin.items()},
        "key": None if letter.record.key is None else letter.record.key.decode(errors="backslashreplace"),
        "value": None if letter.record.value is None else letter.record.value.decode(errors="backslashreplace"),
    }
