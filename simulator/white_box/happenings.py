"""What happened in a run, counted from the metadata that nodes applied and from their logs.

A batch of seeds in which some kind of event never happens does not test what comes after such events, so it fails
(`simulator.coverage`).
"""

from collections.abc import Iterable, Sequence

from quire.metadata.image import ClusterImage
from quire.metadata.partition_image import NO_LEADER, PartitionImage
from quire.replication.partition import Partition
from simulator.disk import SimDisk
from simulator.life import Life

TRUNCATION, FENCING, SHRINK, EXPANSION = "truncation", "broker fenced", "ISR shrink", "ISR expansion"
ELR_ELECTION, ELECTION, COORDINATOR_MOVE, SNAPSHOT = "ELR election", "election", "coordinator move", "snapshot"


REASSIGNMENT, CANCELLATION = "reassignment", "cancelled reassignment"
DISK_MOVE = "move to another disk"


class Happenings:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._unfenced: dict[tuple[int, int], bool] = {}
        """Per broker and broker epoch, whether it is unfenced."""
        self._image_offset = -1
        self._truncations: dict[str, tuple[Life, dict[tuple[bytes, int], int]]] = {}
        """Per node, its life and how often each of its logs was truncated in it."""
        self._snapshots: set[str] = set()
        self._names: dict[str, Sequence[str]] = {}
        """Per node, the names in the folder of its metadata log that were looked at last."""
        self._led: dict[tuple[bytes, int], int] = {}
        """Who led each partition last."""

    def count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def partition(self, key: tuple[bytes, int], before: PartitionImage, now: PartitionImage, *, internal: bool) -> None:
        """The newest state of a partition has changed."""
        isr, isr_before = set(now.isr), set(before.isr)
        if isr_before - isr:
            self.count(SHRINK)
        if isr - isr_before:
            self.count(EXPANSION)
        if before.is_reassigning and not now.is_reassigning:
            cancelled = any(each not in now.replicas for each in before.adding_replicas)
            self.count(CANCELLATION if cancelled else REASSIGNMENT)
        last = self._led.setdefault(key, before.leader)
        if now.leader_epoch == before.leader_epoch or not now.has_leader:
            return
        self.count(ELECTION)
        if now.leader in before.elr and now.leader not in before.isr:
            self.count(ELR_ELECTION)
        if internal and now.leader != last and last != NO_LEADER:
            self.count(COORDINATOR_MOVE)
        self._led[key] = now.leader

    def brokers(self, image: ClusterImage) -> None:
        """A node has applied this image; only what is newer than all others counts."""
        if image.offset <= self._image_offset:
            return
        self._image_offset = image.offset
        for broker in image.brokers.values():
            key = broker.broker_id, broker.epoch
            if broker.fenced and self._unfenced.get(key):
                self.count(FENCING)
            self._unfenced[key] = not broker.fenced

    def logs(self, life: Life, partitions: Iterable[Partition]) -> None:
        last_life, known = self._truncations.get(life.node, (life, {}))
        if last_life != life:
            known = {}
        self._truncations[life.node] = life, known
        for partition in partitions:
            key = partition.topic_id, partition.index
            truncations = partition.log.truncations
            for _ in range(truncations - known.get(key, truncations)):
                self.count(TRUNCATION)
            known[key] = truncations

    def snapshots(self, node: str, disk: SimDisk, folder: str) -> None:
        names = disk.peek_names(folder)
        if names is self._names.get(node):
            return
        self._names[node] = names
        for name in names:
            if name.endswith(".checkpoint") and name[0].isdigit() and name not in self._snapshots:
                self._snapshots.add(name)
                self.count(SNAPSHOT)
