"""A plan as a file: the JSON of Kafka's kafka-reassign-partitions, and what makes such a plan impossible.

{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quire.client.placement.model import Change, Node, Placement, PlacementError

Wanted = dict[tuple[str, int], tuple[int, ...]]
"""The replicas of each partition, by topic and index."""

_VERSION = 1


def parse_plan(text: str) -> Wanted:
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise PlacementError(f"the plan is not JSON: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("partitions"), list):
        raise PlacementError('the plan needs "partitions": a list with a topic, a partition and its replicas each')
    if found.get("version", _VERSION) != _VERSION:
        raise PlacementError(f"the plan has version {found['version']!r}: only {_VERSION} is known")
    wanted: Wanted = {}
    for number, each in enumerate(found["partitions"], 1):
        topic, partition, replicas = _entry(number, each)
        if (topic, partition) in wanted:
            raise PlacementError(f"the plan names {topic}-{partition} twice")
        wanted[topic, partition] = replicas
    if not wanted:
        raise PlacementError("the plan has no partitions")
    return wanted


def _entry(number: int, each: Any) -> tuple[str, int, tuple[int, ...]]:
    if not isinstance(each, dict):
        raise PlacementError(f"entry {number} of the plan is not an object with a topic, a partition and replicas")
    topic, partition, replicas = each.get("topic"), each.get("partition"), each.get("replicas")
    if not isinstance(topic, str) or not isinstance(partition, int) or not _is_id(partition):
        raise PlacementError(f'entry {number} of the plan needs a "topic" and a "partition" of at least 0')
    if not isinstance(replicas, list) or not all(map(_is_id, replicas)):
        raise PlacementError(f'{topic}-{partition} needs "replicas": a list of broker ids')
    return topic, partition, tuple(replicas)


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def changes_of(wanted: Wanted, nodes: Sequence[Node], partitions: Iterable[Placement]) -> list[Change]:
    """What the plan changes. Raises PlacementError if the cluster cannot do all of it."""
    before: Mapping[tuple[str, int], Placement] = {(each.topic, each.partition): each for each in partitions}
    topics = {topic for topic, _ in before}
    up = {each.broker_id for each in nodes}
    changes: list[Change] = []
    for (topic, partition), replicas in wanted.items():
        name = f"{topic}-{partition}"
        if (topic, partition) not in before:
            what = f"topic {topic} has no partition {partition}" if topic in topics else f"there is no topic {topic}"
            raise PlacementError(f"{what}: it may have been deleted since the plan was made")
        if not replicas:
            raise PlacementError(f"{name} would have no replicas")
        twice = [broker for broker, count in Counter(replicas).items() if count > 1]
        if twice:
            raise PlacementError(f"{name} would have two replicas on broker {twice[0]}")
        change = Change(before[topic, partition], replicas)
        unknown = sorted(set(change.adding) - up)
        if unknown:
            raise PlacementError(
                f"{name} cannot move to broker {unknown[0]}, which is not up or does not exist; "
                f"brokers that are up: {', '.join(map(str, sorted(up)))}"
            )
        if change.replicas != change.before.replicas:
            changes.append(change)
    _check_room(changes, nodes)
    return changes


def _check_room(changes: Sequence[Change], nodes: Sequence[Node]) -> None:
    for node in nodes:
        added = sum(each.before.size_bytes for each in changes if node.broker_id in each.adding)
        if node.free_bytes is not None and added > node.free_bytes:
            raise PlacementError(
                f"the plan copies {added:,} bytes to broker {node.broker_id}, and its disks have room for "
                f"{node.free_bytes:,}"
            )


def plan_json(changes: Iterable[Change]) -> dict[str, object]:
    """With more than Kafka's tools need; they ignore it."""
    return {
        "version": _VERSION,
        "partitions": [
            {
                "topic": each.before.topic,
                "partition": each.before.partition,
                "replicas": list(each.replicas),
                "from": list(each.before.replicas),
                "copied_bytes": each.copied_bytes,
            }
            for each in changes
        ],
    }
