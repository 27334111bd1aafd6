"""Partitions in arguments and in output: `orders` is a whole topic, `orders:0,3` are two of its partitions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from quire.cli.missing_topics import topic_failures
from quire.client.admin.topics import describe_topics
from quire.client.metadata import Topic
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.console.explain import explain
from quire.console.failure import fail_with_all
from quire.console.output import numbers
from quire.protocol.errors import ApiError, ErrorCode


class Scope(NamedTuple):
    topic: str
    partitions: tuple[int, ...]  # empty: all partitions

    def __str__(self) -> str:
        return f"{self.topic}:{','.join(map(str, self.partitions))}" if self.partitions else self.topic

    def covers(self, topic_partition: TopicPartition) -> bool:
        return topic_partition.topic == self.topic and (
            not self.partitions or topic_partition.partition in self.partitions
        )


class ScopeType(click.ParamType[Scope]):
    name = "TOPIC[:N,N...]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Scope:
        if isinstance(value, Scope):
            return value
        topic, colon, listed = str(value).partition(":")
        numbers = listed.split(",") if colon else []
        if not topic or not all(number.isascii() and number.isdigit() for number in numbers):
            self.fail(f"{value!r} is not a topic, nor a topic with partitions such as orders:0,3", param, ctx)
        return Scope(topic, tuple(dict.fromkeys(int(number) for number in numbers)))


def resolve(client: BlockingClient, scopes: Sequence[Scope]) -> list[TopicPartition]:
    """The partitions of the scopes, each once; ends the command if some do not exist, and names all of them."""
    found = client.run(describe_topics(client.cluster, [scope.topic for scope in scopes]))
    topic_partitions: dict[TopicPartition, None] = {}
    missing: dict[str, ApiError] = {}
    without: list[ApiError] = []
    for scope in scopes:
        topic = found[scope.topic]
        if isinstance(topic, ApiError):
            missing[scope.topic] = topic
            continue
        for partition in scope.partitions or sorted(topic.partitions):
            topic_partition = TopicPartition(scope.topic, partition)
            if partition in topic.partitions:
                topic_partitions[topic_partition] = None
            else:
                without.append(_no_partition(topic, partition))
    fail_with_all([*topic_failures(client, missing), *map(explain, without)])
    return list(topic_partitions)


def _no_partition(topic: Topic, partition: int) -> ApiError:
    return ApiError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"topic {topic.name} has no partition {partition}, only 0 to {len(topic.partitions) - 1}",
    )


def in_one_cell(topic_partitions: Sequence[TopicPartition]) -> str:
    """`orders:0,1 users:3`: the notation of the command line."""
    return " ".join(f"{topic}:{numbers(indexes)}" for topic, indexes in by_topic(topic_partitions).items()) or "-"


def by_topic(topic_partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic_partition in topic_partitions:
        topics.setdefault(topic_partition.topic, []).append(topic_partition.partition)
    return topics
