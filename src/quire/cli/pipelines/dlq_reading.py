"""Finds dead-letter topics and reads their letters, for `quire dlq`.

`Sorter` decides which letters a replay sends back, and why it leaves the others.
"""

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from quire.cli.missing_topics import topic_failures
from quire.cli.pipelines.committed_records import ends_of, read_committed
from quire.cli.pipelines.dlq_marks import Mark, Marks
from quire.client.admin.topics import describe_topics
from quire.client.metadata import Topic
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import EXIT_NOT_FOUND, Failure, fail_with_all
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Record
from quire.spark.dead_letters import SUFFIX, DeadLetter, NotADeadLetterError, read_headers

MOST_ATTEMPTS = 3
GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


class Letter(NamedTuple):
    """A record of a dead-letter topic; `why` is a text if its headers are not valid."""

    topic_partition: TopicPartition
    record: Record
    why: DeadLetter | str

    @property
    def error(self) -> str:
        return self.why if isinstance(self.why, str) else self.why.error

    @property
    def origin(self) -> str:
        assert isinstance(self.why, DeadLetter)
        return self.why.topic

    @property
    def mark(self) -> Mark:
        return Mark(self.topic_partition.partition, self.record.offset)


class Fate(Enum):
    """What a replay does with a letter, and why."""

    SENT = "to be sent back"
    SENT_BEFORE = "sent back before (--again sends them again)"
    OTHER_ERROR = "with another error"
    TOO_OFTEN = "failed too often (--max-attempts)"
    TOPIC_GONE = "of topics that do not exist"
    NO_LETTER = "without the headers of a dead letter"


PASSED_OVER = (Fate.OTHER_ERROR, Fate.TOO_OFTEN, Fate.TOPIC_GONE, Fate.NO_LETTER)


class Sorter:
    """Decides the fate of letters: by their marks, and by the options of a replay."""

    def __init__(
        self,
        client: BlockingClient,
        marks: Marks,
        pattern: re.Pattern[str] | None = None,
        max_attempts: int = MOST_ATTEMPTS,
        again: bool = False,
    ) -> None:
        self._client = client
        self._marks = marks
        self._pattern = pattern
        self._max_attempts = max_attempts
        self._again = again
        self._gone: dict[str, bool] = {}

    @property
    def gone(self) -> list[str]:
        """The topics of letters that are known not to exist."""
        return [topic for topic, gone in self._gone.items() if gone]

    def fate(self, letter: Letter) -> Fate:
        if letter.mark in self._marks and not self._again:
            return Fate.SENT_BEFORE
        if not matches(letter, self._pattern):
            return Fate.OTHER_ERROR
        if isinstance(letter.why, str):
            return Fate.NO_LETTER
        if letter.why.attempt >= self._max_attempts:
            return Fate.TOO_OFTEN
        return Fate.TOPIC_GONE if self._is_gone(letter.origin) else Fate.SENT

    def _is_gone(self, topic: str) -> bool:
        """Whether sending to a topic can never succeed. A letter of such a topic must not block all others."""
        if topic not in self._gone:
            found = self._client.run(describe_topics(self._client.cluster, [topic]))[topic]
            self._gone[topic] = isinstance(found, ApiError) and found.code in GONE
        return self._gone[topic]


def matches(letter: Letter, pattern: re.Pattern[str] | None) -> bool:
    return pattern is None or pattern.search(letter.error) is not None


def dead_letter_topics(client: BlockingClient, wanted: Iterable[str] = ()) -> list[Topic]:
    """The named topics, or all dead-letter topics. ORDERS and ORDERS.dlq mean the same."""
    names = [name if name.endswith(SUFFIX) else name + SUFFIX for name in wanted]
    origins = [name.removesuffix(SUFFIX) for name in names]
    found = client.run(describe_topics(client.cluster, [*names, *origins] or None))
    chosen = {name: topic for name, topic in found.items() if name.endswith(SUFFIX)}
    errors = {name: topic for name, topic in chosen.items() if isinstance(topic, ApiError)}
    unharmed = [name for name in errors if isinstance(found.get(name.removesuffix(SUFFIX)), Topic)]
    missing = {name: error for name, error in errors.items() if name not in unharmed}
    failures = topic_failures(client, missing, creating_helps=False)
    none = [Failure(f"{name.removesuffix(SUFFIX)} has no dead letters.", EXIT_NOT_FOUND) for name in unharmed]
    fail_with_all([*none, *failures])
    return [topic for topic in chosen.values() if isinstance(topic, Topic)]


def read_letters(client: BlockingClient, topic: Topic) -> Iterator[Letter]:
    """Every dead letter that is committed now."""
    topic_partitions = [TopicPartition(topic.name, partition) for partition in topic.partitions]
    for topic_partition, record in read_committed(client, ends_of(client, topic_partitions)):
        yield Letter(topic_partition, record, _why(record))


def _why(record: Record) -> DeadLetter | str:
    try:
        return read_headers(record.headers)
    except NotADeadLetterError as error:
        return f"this is not a dead letter: {error}"
