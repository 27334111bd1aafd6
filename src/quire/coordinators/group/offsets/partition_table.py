"""A table of values by group, topic and partition."""

from collections.abc import Iterator, Mapping
from sys import intern
from typing import Generic, TypeVar

V = TypeVar("V")


class PartitionTable(Generic[V]):
    """Has no empty inner tables, and one string object for each topic name."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, V]]] = {}

    def get(self, group_id: str, topic: str, partition: int) -> V | None:
        topics = self._groups.get(group_id)
        if topics is None:
            return None
        partitions = topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put(self, group_id: str, topic: str, partition: int, value: V) -> None:
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[intern(topic)] = {}
        partitions[partition] = value

    def pop(self, group_id: str, topic: str, partition: int) -> V | None:
        topics = self._groups.get(group_id, {})
        partitions = topics.get(topic, {})
        value = partitions.pop(partition, None)
        if value is not None and not partitions:
            del topics[topic]
            if not topics:
                del self._groups[group_id]
        return value

    def group_ids(self) -> Iterator[str]:
        return iter(self._groups)

    def topics_of(self, group_id: str) -> Mapping[str, Mapping[int, V]]:
        return self._groups.get(group_id, {})
