"""The partitions that an option selects (`subscribe`, `subscribePattern` or `assign`), and the ids of their topics."""

import re
from collections.abc import Collection, Iterable, Mapping

from pyspark_quire.errors import OptionError, QuireError
from pyspark_quire.options import ASSIGN, SUBSCRIBE, SUBSCRIBE_PATTERN, Options
from quire.client.cluster import Cluster
from quire.client.metadata import Topic
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ErrorCode
from quire.protocol.uuids import to_text
from quire.steps import Steps, sleep

CHOICES = (SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN)

Partitions = dict[TopicPartition, str]
"""Partitions in order, each with its topic's id: a topic that was created again has another id."""

ASK_AGAIN_MS = 200
ASK_AGAIN_TIMES = 5


def check_subscription(options: Options) -> None:
    given = [option.name for option in CHOICES if option in options]
    names = ", ".join(option.name for option in CHOICES)
    if not given:
        raise OptionError(f"no topic is selected; give one of the options {names}")
    if len(given) > 1:
        raise OptionError(f"{' and '.join(given)} both select what to read; give one of them")


def describe(options: Options) -> str:
    """The selected topics, for a message."""
    pattern, assigned = options[SUBSCRIBE_PATTERN], options[ASSIGN]
    if pattern is not None:
        return f"{SUBSCRIBE_PATTERN.name} {pattern}"
    if assigned is not None:
        return f"{ASSIGN.name} {', '.join(map(str, assigned))}"
    names = options.required(SUBSCRIBE)
    return f"{SUBSCRIBE.name} {', '.join(names)}"


def foreign(options: Options, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The partitions among these that the options do not select."""
    pattern, assigned = options[SUBSCRIBE_PATTERN], options[ASSIGN]
    if pattern is not None:
        matches = re.compile(pattern).fullmatch
        return [partition for partition in partitions if not matches(partition.topic)]
    if assigned is not None:
        return [partition for partition in partitions if partition not in assigned]
    names = options.required(SUBSCRIBE)
    return [partition for partition in partitions if partition.topic not in names]


def find_partitions(
    cluster: Cluster,
    options: Options,
    known: Mapping[TopicPartition, str] | None = None,
    gone: Collection[str] = (),
    *,
    lenient: bool = False,
) -> Steps[Partitions]:
    """The partitions that exist now. A selected topic that does not exist is an error, unless `lenient`.

    If a `known` partition or a named topic is missing, the request is repeated a few times: a broker that is starting,
    or that has old metadata, may not know it yet, or may still know a deleted topic. Known partitions that stay missing
    are left out, and the caller decides what that means. Topics in `gone` are not waited for.
    """
    before = known or {}
    for _ in range(ASK_AGAIN_TIMES):
        names = yield from _find_names(cluster, options)
        there = cluster.metadata.topics
        found = {
            partition: topic_id
            for name in names
            if name in there
            for partition, topic_id in _with_topic_id(there[name])
        }
        missing = [name for name in names if name not in there and name not in gone]
        if not missing and all(found.get(partition) == before[partition] for partition in before):
            break
        yield from sleep(cluster.clock, ASK_AGAIN_MS)
    excused = {partition.topic for partition in before}.union(gone)
    for name in names:
        topic = cluster.metadata.topics.get(name)
        if topic is not None:
            _check(topic)
        elif name not in excused and not lenient:
            raise QuireError(
                f"topic {name} does not exist; create it first (`quire topics create {name}`), "
                f"or let a stream wait for it with {SUBSCRIBE_PATTERN.name}"
            )
    assigned = options[ASSIGN]
    return found if assigned is None else _chosen(found, assigned, None if lenient else excused)


def _with_topic_id(topic: Topic) -> list[tuple[TopicPartition, str]]:
    return [(TopicPartition(topic.name, index), to_text(topic.topic_id)) for index in sorted(topic.partitions)]


def _find_names(cluster: Cluster, options: Options) -> Steps[list[str]]:
    pattern, assigned = options[SUBSCRIBE_PATTERN], options[ASSIGN]
    if pattern is not None:
        yield from cluster.refresh(None)
        matches = re.compile(pattern).fullmatch
        return sorted(name for name, topic in cluster.metadata.topics.items() if matches(name) and not topic.internal)
    names = options.required(SUBSCRIBE) if assigned is None else sorted({partition.topic for partition in assigned})
    yield from cluster.refresh(names)
    return names


def _check(topic: Topic) -> None:
    if topic.error not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        raise QuireError(f"topic {topic.name} cannot be read now ({topic.error.name})")


def _chosen(existing: Partitions, assigned: list[TopicPartition], excused: Collection[str] | None) -> Partitions:
    """The assigned partitions; a missing one is an error, unless its topic is excused (None: all are)."""
    for topic_partition in assigned:
        topic, number = topic_partition
        if topic_partition not in existing and excused is not None and topic not in excused:
            count = sum(other.topic == topic for other in existing)
            raise QuireError(f"topic {topic} has no partition {number}; its partitions are numbered 0 to {count - 1}")
    return {partition: existing[partition] for partition in assigned if partition in existing}
