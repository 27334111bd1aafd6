"""The shards of one kind of coordinator on this node: one for each partition of its topic that the node leads."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from quire.coordinators.runtime.machine import StateMachine
from quire.coordinators.runtime.partitioning import partition_for
from quire.coordinators.runtime.shard import Shard
from quire.protocol.errors import ApiError, ErrorCode

log = logging.getLogger("quire.coordinators")

M = TypeVar("M", bound=StateMachine)

MakeShard = Callable[[int, int], Shard[M]]
"""(partition, leader epoch) -> a shard that is not loaded yet."""


class CoordinatorRuntime(Generic[M]):
    __slots__ = ("_make_shard", "_partition_count", "_shards", "topic")

    def __init__(self, topic: str, make_shard: MakeShard[M]) -> None:
        self.topic = topic
        self._make_shard = make_shard
        self._shards: dict[int, Shard[M]] = {}
        self._partition_count = 0

    def __iter__(self) -> Iterator[Shard[M]]:
        return iter(self._shards.values())

    @property
    def partition_count(self) -> int:
        """0 while the topic does not exist."""
        return self._partition_count

    def partition_for(self, name: str) -> int:
        if self._partition_count == 0:
            raise ApiError(ErrorCode.NOT_COORDINATOR, f"{self.topic} does not exist yet: ask for the coordinator first")
        return partition_for(name, self._partition_count)

    def shard_for(self, name: str) -> Shard[M]:
        """The shard of a group id or transactional id; ApiError if this node does not have it."""
        count = self._partition_count
        found = self._shards.get(partition_for(name, count)) if count else None
        return self.shard(self.partition_for(name)) if found is None else found

    def shard(self, partition: int) -> Shard[M]:
        shard = self._shards.get(partition)
        if shard is None:
            raise ApiError(ErrorCode.NOT_COORDINATOR, f"another node leads {self.topic}-{partition}")
        return shard

    # --- Metadata

    def topic_changed(self, partition_count: int) -> None:
        self._partition_count = partition_count

    def elected(self, partition: int, leader_epoch: int) -> None:
        """The node leads the partition in this epoch: loads the state from the log."""
        shard = self._shards.get(partition)
        if shard is not None and shard.leader_epoch >= leader_epoch:
            return
        self.resigned(partition)
        shard = self._shards[partition] = self._make_shard(partition, leader_epoch)
        shard.load()

    def resigned(self, partition: int) -> None:
        shard = self._shards.pop(partition, None)
        if shard is not None:
            shard.unload()

    def send_now(self) -> None:
        """Appends the records that can wait."""
        for shard in self:
            shard.send_now()

    def stop(self) -> None:
        for partition in list(self._shards):
            self.resigned(partition)

    def metadata_changed(self, topics: Sequence[str]) -> None:
        """`topics` were created or deleted."""
        for shard in self:
            shard.metadata_changed(topics)
