"""`quire dlq replay`: sends dead letters back to their topics, each once.

A letter that is not sent stays as it is, and the next replay considers it again. The records and their marks
(`dlq_marks`) are written in one transaction: a replay that is killed has sent a letter and marked it, or neither.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import click

from quire.cli.name_completion import complete_topics
from quire.cli.pipelines.dlq_marks import Mark, create_marks_topic, mark_value, marks_topic, read_marks
from quire.cli.pipelines.dlq_reading import (
    MOST_ATTEMPTS,
    PASSED_OVER,
    Fate,
    Letter,
    Sorter,
    dead_letter_topics,
    read_letters,
)
from quire.client.metadata import Topic
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.console.options import IntRange, Pattern, cluster_options, connect, json_option
from quire.console.output import count, print_json, print_table
from quire.console.terminal import echo
from quire.spark.dead_letters import DeadLetter, headers_to_send_back

TRANSACTIONAL_ID_PREFIX = "quire-dlq-replay-"
IN_ONE_TRANSACTION = 500

Item = TypeVar("Item")


@click.command(
    epilog="""\b
Examples:
  quire dlq replay orders --dry-run                what would be sent back
  quire dlq replay orders                          after the job was fixed
  quire dlq replay orders --error 'has_a_price'    only these; the others stay
  quire dlq replay orders --max-attempts 10"""
)
@click.argument("topic", shell_complete=complete_topics)
@click.option("--error", "pattern", type=Pattern(), help="Only those whose error matches; the others stay.")
@click.option(
    "--max-attempts",
    type=IntRange(min=1),
    default=MOST_ATTEMPTS,
    show_default=True,
    help="Leave those that have failed this often.",
)
@click.option("--again", is_flag=True, help="Also those that were sent back before.")
@click.option("--dry-run", is_flag=True, help="Only show what would be sent back.")
@click.option("--from-beginning", is_flag=True, hidden=True, help="Has no effect: every replay begins there.")
@json_option
@cluster_options
def replay(
    topic: str,
    pattern: re.Pattern[str] | None,
    max_attempts: int,
    again: bool,
    dry_run: bool,
    from_beginning: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Send dead letters of TOPIC (or TOPIC.dlq) back to their original topics, each once, with the next attempt number.

    Letters that were sent back before are not sent again. Letters that are not sent, because of their error, their
    attempts or a deleted topic, stay, and the next replay considers them. The records are sent in transactions, and
    with each goes a mark in the compacted topic TOPIC.dlq.replayed. If that topic is deleted, all letters count as not
    sent.
    """
    fates: Counter[Fate] = Counter()
    planned: Counter[tuple[str, str]] = Counter()
    with connect(servers, timeout_s) as client:
        (letters_topic,) = dead_letter_topics(client, [topic])
        # First: this ends the open transaction of another replay, so that the marks are complete.
        sender = None if dry_run else _Sender(client, letters_topic)
        marks = read_marks(client, letters_topic)
        sorter = Sorter(client, marks, pattern, max_attempts, again)
        if sender is not None:
            sender.remove(marks.stale)
        for chunk in _chunks(read_letters(client, letters_topic)):
            sorted_chunk = [(letter, sorter.fate(letter)) for letter in chunk]
            back = [letter for letter, fate in sorted_chunk if fate is Fate.SENT]
            if sender is not None and back:
                sender.send_back(back)
            fates.update(fate for _, fate in sorted_chunk)
            planned.update((letter.origin, letter.error) for letter in back)
        if sender is not None:
            sender.close()
    for gone in sorter.gone:
        echo(f"quire: topic {gone} does not exist; its dead letters stay.", err=True)
    if as_json:
        print_json(_summary(letters_topic.name, dry_run, fates))
    else:
        _report(letters_topic.name, dry_run, fates, planned, pattern)


class _Sender:
    """Sends letters back, with a mark for each, in transactions."""

    def __init__(self, client: BlockingClient, letters_topic: Topic) -> None:
        self._client = client
        self._topic = letters_topic
        self._marks = marks_topic(letters_topic.name)
        transactional_id = f"{TRANSACTIONAL_ID_PREFIX}{letters_topic.name}"
        self._producer = Producer(client.cluster, ProducerConfig(transactional_id=transactional_id))
        client.run(self._producer.init_transactions())
        self._created = False

    def send_back(self, letters: list[Letter]) -> None:
        """One transaction."""
        self._prepare(dict.fromkeys(letter.origin for letter in letters))
        self._producer.begin()
        try:
            for letter in letters:
                self._send(letter)
            self._client.run(self._producer.commit())
        except BaseException:
            self._client.run(self._producer.abort())
            raise

    def remove(self, marks: Iterable[Mark]) -> None:
        """Writes tombstones, so that compaction removes these marks."""
        for chunk in _chunks(iter(marks)):
            self._prepare(())
            self._producer.begin()
            for mark in chunk:
                self._producer.send(self._marks, None, key=mark.key)
            self._client.run(self._producer.commit())

    def close(self) -> None:
        self._producer.close()

    def _prepare(self, topics: Iterable[str]) -> None:
        if not self._created:
            create_marks_topic(self._client, self._topic.name)
            self._created = True
        for topic in (self._marks, *topics):
            self._client.run(self._producer.prepare(topic))

    def _send(self, letter: Letter) -> None:
        assert isinstance(letter.why, DeadLetter)
        known = self._client.cluster.metadata.topics[letter.origin].partitions
        self._producer.send(
            letter.origin,
            letter.record.value,
            key=letter.record.key,
            headers=headers_to_send_back(letter.record.headers),
            partition=letter.why.partition if letter.why.partition in known else None,
        )
        self._producer.send(self._marks, mark_value(self._topic.topic_id, letter.origin), key=letter.mark.key)


def _chunks(items: Iterator[Item]) -> Iterator[list[Item]]:
    while chunk := list(islice(items, IN_ONE_TRANSACTION)):
        yield chunk


def _summary(name: str, dry_run: bool, fates: Counter[Fate]) -> dict[str, object]:
    return {
        "topic": name,
        "dry_run": dry_run,
        "would_send" if dry_run else "sent": fates[Fate.SENT],
        "sent_before": fates[Fate.SENT_BEFORE],
        "passed_over": sum(fates[fate] for fate in PASSED_OVER),
    }


def _report(
    name: str,
    dry_run: bool,
    fates: Counter[Fate],
    planned: Counter[tuple[str, str]],
    pattern: re.Pattern[str] | None,
) -> None:
    if dry_run and planned:
        rows = [(number, origin, error) for (origin, error), number in planned.most_common()]
        print_table(("letters", "to", "error"), rows)
    verb = "would be sent back" if dry_run else "sent back"
    echo(f"{count(fates[Fate.SENT], 'dead letter')} {verb} from {name}")
    for fate in (*PASSED_OVER, Fate.SENT_BEFORE):
        if fates[fate]:
            stay = "" if fate is Fate.SENT_BEFORE else " stay:"
            echo(f"  {fates[fate]:,}{stay} {fate.value}")
    if pattern is not None and not fates[Fate.SENT] and fates[Fate.OTHER_ERROR]:
        echo(f"No letter that waits matches {pattern.pattern!r}; `quire dlq list {name}` shows the errors.", err=True)
