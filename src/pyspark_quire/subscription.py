"""Which partitions an option asks for (`subscribe`, `subscribePattern` or `assign`), and the ids of their topics."""

import re

from pyspark_quire.errors import OptionError, QuireError
from pyspark_quire.options import ASSIGN, SUBSCRIBE, SUBSCRIBE_PATTERN, Options
from quire.client.cluster import Cluster
from quire.client.metadata import Topic
from quire.client.offsets import TopicPartition
from quire.client.steps import Steps
from quire.protocol.errors import ErrorCode
from quire.protocol.uuids import to_text

CHOICES = (SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN)

Places = dict[TopicPartition, str]
"""Partitions in order, each with its topic's id: a topic made anew under an old name has another."""


def check_subscription(options: Options) -> None:
    given = [option.name for option in CHOICES if option in options]
    names = ", ".join(option.name for option in CHOICES)
    if not given:
        raise OptionError(f"nothing says what to read; give one of the options {names}")
    if len(given) > 1:
        raise OptionError(f"{' and '.join(given)} both say what to read; give one of them")


def find_places(cluster: Cluster, options: Options, *, known: Places | None = None) -> Steps[Places]:
    """The partitions that are there now. A topic asked for by name that does not exist is an error, unless `known`.

    What becomes of a topic that was read before and is gone is for the caller to say.
    """
    expected = {place.topic for place in known or {}}
    pattern, assigned = options[SUBSCRIBE_PATTERN], options[ASSIGN]
    if pattern is not None:
        yield from cluster.refresh(None)
        matches = re.compile(pattern).fullmatch
        names = sorted(name for name, topic in cluster.metadata.topics.items() if matches(name) and not topic.internal)
    elif assigned is not None:
        names = sorted({place.topic for place in assigned})
        yield from cluster.refresh(names)
    else:
        names = options.required(SUBSCRIBE)
        yield from cluster.refresh(names)
    places: Places = {}
    for name in names:
        topic = cluster.metadata.topics.get(name)
        if topic is None or topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            if name not in expected:
                raise QuireError(f"topic {name} does not exist")
            continue
        _check(topic)
        places |= {TopicPartition(name, index): to_text(topic.topic_id) for index in sorted(topic.partitions)}
    return places if assigned is None else _chosen(places, assigned, expected)


def _check(topic: Topic) -> None:
    if topic.error and not topic.partitions:
        raise QuireError(f"topic {topic.name} cannot be read now ({topic.error.name})")


def _chosen(places: Places, assigned: list[TopicPartition], expected: set[str]) -> Places:
    for place in assigned:
        if place not in places and place.topic not in expected:
            count = sum(other.topic == place.topic for other in places)
            raise QuireError(f"topic {place.topic} has no partition {place.partition}; it has {count}, from 0 on")
    return {place: places[place] for place in assigned if place in places}
