"""Looks into all nodes: at regular intervals of virtual time, and completely at the end.

It also tells the ledger which machines hold each partition, so that only their power losses count for it.
"""

from collections.abc import Sequence

from quire.metadata.image import ClusterImage
from quire.metadata.partition_image import PartitionImage
from quire.node.node import Node
from simulator.ledger import Ledger
from simulator.machine import Machine
from simulator.white_box.committed_check import CommittedCheck
from simulator.white_box.image_digest import image_digest
from simulator.white_box.partition_check import PartitionCheck
from simulator.white_box.quorum_check import QuorumCheck
from simulator.white_box.vote_check import VoteCheck

INTERVAL_MS = 20.0
EVERY_NTH_OFFSET = 8
"""A digest of an image takes milliseconds; all nodes make it at the same offsets."""


class WhiteBox:
    def __init__(self, machines: Sequence[Machine], ledger: Ledger) -> None:
        self.quorum = QuorumCheck()
        self.committed = CommittedCheck()
        self.partitions = PartitionCheck()
        self.votes = VoteCheck()
        self._machines = machines
        self._ledger = ledger
        self._next_ms = 0.0
        self._digested: dict[str, int] = {}

    def look_if_due(self, now_ms: float) -> None:
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + INTERVAL_MS
            self.look()

    def look(self) -> None:
        """What may be wrong at any time."""
        newest: ClusterImage | None = None
        for machine in self._machines:
            node = machine.node
            if node is None or not is_open(node):
                continue
            self._ledger.counts.checks += 1
            log = node.metadata.log
            self.quorum.look(machine.life, log, has_controller=node.metadata.active is not None and log.is_leader)
            self.votes.look(log)
            self.committed.look(machine.life, machine.disk, node.config.metadata_log_dir, log.high_watermark)
            self.partitions.look(machine.name, node.partitions)
            image = node.image
            if image.offset % EVERY_NTH_OFFSET == 0 and self._digested.get(machine.name) != image.offset:
                self._digested[machine.name] = image.offset
                self.committed.has_image(machine.name, image.offset, image_digest(image))
            if newest is None or image.offset > newest.offset:
                newest = image
        if newest is not None:
            self._place(newest)

    def look_at_the_end(self) -> None:
        """All nodes work and nothing changes: they must have the same image."""
        self.look()
        for machine in self._machines:
            assert machine.node is not None
            image = machine.node.image
            self.committed.has_image(machine.name, image.offset, image_digest(image))

    @property
    def agree(self) -> bool:
        """Whether every node has applied everything that is in the log of any node."""
        nodes = [machine.node for machine in self._machines if machine.node is not None and is_open(machine.node)]
        ends = {node.metadata.log.next_offset for node in nodes} | {node.image.offset + 1 for node in nodes}
        return len(nodes) == len(self._machines) and len(ends) == 1

    def _place(self, image: ClusterImage) -> None:
        names = {number: machine.name for number, machine in enumerate(self._machines, 1)}
        for book in self._ledger.live_partitions():
            partition = image.partition(book.topic.topic_id, book.index)
            if partition is not None:
                book.replicas.are([names[replica] for replica in _in_sync(partition) if replica in names])


def _in_sync(partition: PartitionImage) -> list[int]:
    return [*partition.isr, *(replica for replica in partition.elr if replica not in partition.isr)]


def is_open(node: Node) -> bool:
    """Whether it has a metadata log to look at."""
    return hasattr(node, "metadata") and node.metadata.log._core is not None
