"""Partitions as people name them, and as they are shown: `orders` for all of a topic, `orders:0,3` for some of it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from quire.cli.output import numbers
from quire.client.admin.topics import describe_topics
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError, ErrorCode


class Scope(NamedTuple):
    topic: str
    partitions: tuple[int, ...]  # none: all of them

    def __str__(self) -> str:
        return f"{self.topic}:{','.join(map(str, self.partitions))}" if self.partitions else self.topic

    def covers(self, place: TopicPartition) -> bool:
        return place.topic == self.topic and (not self.partitions or place.partition in self.partitions)


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
    """The partitions that are meant, each once; raises for what is not there."""
    found = client.run(describe_topics(client.cluster, [scope.topic for scope in scopes]))
    places: dict[TopicPartition, None] = {}
    for scope in scopes:
        topic = found[scope.topic]
        if isinstance(topic, ApiError):
            raise topic
        for partition in scope.partitions or sorted(topic.partitions):
            if partition not in topic.partitions:
                raise ApiError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"topic {scope.topic} has no partition {partition}, only 0 to {len(topic.partitions) - 1}",
                )
            places[TopicPartition(scope.topic, partition)] = None
    return list(places)


def in_one_cell(places: Sequence[TopicPartition]) -> str:
    """`orders:0,1 users:3`, in the way that partitions are named on the command line."""
    return " ".join(f"{topic}:{numbers(indexes)}" for topic, indexes in by_topic(places).items()) or "-"


def by_topic(places: Sequence[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for place in places:
        topics.setdefault(place.topic, []).append(place.partition)
    return topics
