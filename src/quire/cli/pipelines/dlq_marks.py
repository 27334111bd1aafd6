"""Which dead letters were sent back: one mark for each, in the compacted topic `<topic>.dlq.replayed`.

The key of a mark is the partition and the offset of the dead letter, as in `0-42`. `quire dlq replay` writes the marks
in the transaction that sends the records back, so a letter that was sent has a mark, and no other letter has one. Marks
do not expire. A mark is removed by a tombstone when its letter is gone: deleted with old segments, or with the topic.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from quire.cli.pipelines.committed_records import ends_of, read_committed
from quire.client.admin.topics import NewTopic, create_topics, describe_topics
from quire.client.metadata import Topic
from quire.client.offsets import EARLIEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.uuids import to_text

MARKS_SUFFIX = ".replayed"


class Mark(NamedTuple):
    """The position of a dead letter in its topic."""

    partition: int
    offset: int

    @property
    def key(self) -> bytes:
        return b"%d-%d" % self


def marks_topic(dead_letters: str) -> str:
    return dead_letters + MARKS_SUFFIX


def mark_value(topic_id: bytes, sent_to: str) -> bytes:
    """The id tells a topic from an earlier one of the same name, whose offsets meant other letters."""
    return json.dumps({"topic_id": to_text(topic_id), "sent_to": sent_to}).encode()


class Marks:
    """The marks of one dead-letter topic, as they were when it was created."""

    __slots__ = ("_sent", "stale")

    def __init__(self, sent: set[Mark], stale: list[Mark]) -> None:
        self._sent = sent
        self.stale = stale
        """Marks whose letters are gone."""

    def __contains__(self, mark: Mark) -> bool:
        return mark in self._sent


def create_marks_topic(client: BlockingClient, dead_letters: str) -> None:
    """One partition, compacted. Does nothing if the topic exists."""
    name = marks_topic(dead_letters)
    new = NewTopic(name, partitions=1, configs={"cleanup.policy": "compact"})
    result = client.run(create_topics(client.cluster, [new]))[name]
    if isinstance(result, ApiError) and result.code != ErrorCode.TOPIC_ALREADY_EXISTS:
        raise result


def read_marks(client: BlockingClient, dead_letters: Topic) -> Marks:
    """The marks that are committed now; none if nothing was ever sent back."""
    name = marks_topic(dead_letters.name)
    found = client.run(describe_topics(client.cluster, [name]))[name]
    if isinstance(found, ApiError):
        if found.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return Marks(set(), [])
        raise found
    topic_partitions = [TopicPartition(dead_letters.name, partition) for partition in dead_letters.partitions]
    firsts = client.run(list_offsets(client.cluster, dict.fromkeys(topic_partitions, EARLIEST)))
    topic_id = to_text(dead_letters.topic_id)
    sent: set[Mark] = set()
    stale: list[Mark] = []
    for mark, of_topic in _last_values(client, found).items():
        first = firsts.get(TopicPartition(dead_letters.name, mark.partition))
        if of_topic == topic_id and first is not None and mark.offset >= first.offset:
            sent.add(mark)
        else:
            stale.append(mark)
    return Marks(sent, stale)


def _last_values(client: BlockingClient, topic: Topic) -> dict[Mark, str]:
    """The id of the dead-letter topic in each mark; a later mark or tombstone replaces an earlier one."""
    marks: dict[Mark, str] = {}
    for mark, topic_id in _all_values(client, topic):
        if topic_id is None:
            marks.pop(mark, None)
        else:
            marks[mark] = topic_id
    return marks


def _all_values(client: BlockingClient, topic: Topic) -> Iterator[tuple[Mark, str | None]]:
    topic_partitions = [TopicPartition(topic.name, partition) for partition in topic.partitions]
    for _, record in read_committed(client, ends_of(client, topic_partitions)):
        mark = _parse_key(record.key)
        if mark is not None:
            yield mark, None if record.value is None else _topic_id(record.value)


def _parse_key(key: bytes | None) -> Mark | None:
    """None for a key that is not of a mark; other programs can write to the topic too."""
    partition, dash, offset = (key or b"").partition(b"-")
    return Mark(int(partition), int(offset)) if dash and partition.isdigit() and offset.isdigit() else None


def _topic_id(value: bytes) -> str:
    try:
        return str(json.loads(value)["topic_id"])
    except (ValueError, KeyError, TypeError):
        return ""
