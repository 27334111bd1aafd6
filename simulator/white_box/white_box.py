"""Looks into all nodes: at regular intervals of virtual time, and completely at the end.

In a cluster it also tells the ledger which machines hold and lead each partition, so that only losses of these count.
"""

from collections.abc import Callable, Sequence

from quire.node.node import Node
from quire.raft.log_store import FOLDER
from simulator.checks.checker import Checker
from simulator.ledger import Ledger
from simulator.machine import Death, Flushed, Machine
from simulator.violation import Violation
from simulator.white_box.committed_check import CommittedCheck
from simulator.white_box.equal_replicas import EqualReplicas
from simulator.white_box.happenings import Happenings
from simulator.white_box.image_digest import image_digest
from simulator.white_box.leadership_watch import LeadershipWatch
from simulator.white_box.partition_check import PartitionCheck
from simulator.white_box.quorum_check import QuorumCheck
from simulator.white_box.replica_check import ReplicaCheck
from simulator.white_box.vote_check import VoteCheck
from simulator.white_box.voter_check import VoterCheck

INTERVAL_MS = 20.0
EVERY_NTH_OFFSET = 8
"""A digest of an image takes milliseconds; all nodes make it at the same offsets."""
WHOLE_AGAIN = "after all faults every partition has a leader and all its replicas in the ISR"


class WhiteBox:
    def __init__(
        self,
        machines: Sequence[Machine],
        ledger: Ledger,
        checker: Checker,
        *,
        state_lost: Callable[[], None] = lambda: None,
        coordinator_moved: Callable[[], None] = lambda: None,
    ) -> None:
        """`state_lost` is called when records that coordinators or transactions need may be lost in a cluster.

        `coordinator_moved` is called when another node begins to coordinate some transactions.
        """
        self.quorum = QuorumCheck()
        self.committed = CommittedCheck()
        self.partitions = PartitionCheck()
        self.votes = VoteCheck()
        self.voters = VoterCheck()
        self.happenings = Happenings()
        self._checker = checker
        self._machines = machines
        self._ledger = ledger
        self._next_ms = 0.0
        self._digested: dict[str, int] = {}
        self._leaders: LeadershipWatch | None = None
        """Of a cluster; a node on its own leads everything."""
        if len(machines) > 1:
            self._leaders = LeadershipWatch(machines, ledger, checker, self.happenings, state_lost, coordinator_moved)
        self._replicas = ReplicaCheck(machines, ledger)
        self.equal = EqualReplicas(machines, {} if self._leaders is None else self._leaders.ever_lost)

    def follow(self, now_ms: float) -> None:
        """Called after each event."""
        if self._leaders is not None:
            self._leaders.follow()
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + INTERVAL_MS
            self.check(now_ms)

    def ended(self, machine: Machine, death: Death, flushed: Flushed) -> None:
        """A node of a cluster has ended."""
        assert self._leaders is not None
        self._leaders.ended(machine.name, flushed, power_lost=death.loses_power)

    def check(self, now_ms: float) -> None:
        """What may be wrong at any time."""
        for machine in self._machines:
            node = machine.node
            if node is None or not is_open(node):
                continue
            self._ledger.counts.checks += 1
            log = node.metadata.log
            self.quorum.check(machine.life, log, has_controller=node.metadata.active is not None and log.is_leader)
            self.votes.check(log)
            self.voters.check(machine.name, log)
            self.committed.check(machine.life, machine.disk, node.config.metadata_log_dir, log.high_watermark)
            self.partitions.check(machine.name, node.partitions)
            self.happenings.logs(machine.life, node.partitions)
            self.happenings.snapshots(machine.name, machine.disk, f"{node.config.metadata_log_dir}/{FOLDER}")
            image = node.image
            if image.offset % EVERY_NTH_OFFSET == 0 and self._digested.get(machine.name) != image.offset:
                self._digested[machine.name] = image.offset
                self.committed.has_image(machine.name, image.offset, image_digest(image))
        if self._leaders is not None:
            self._replicas.check(self._leaders.newest, now_ms)

    def check_at_end(self, now_ms: float) -> None:
        """All nodes work and nothing changes: they must have the same image, and replicas the same logs."""
        self.check(now_ms)
        for machine in self._machines:
            assert machine.node is not None
            image = machine.node.image
            self.committed.has_image(machine.name, image.offset, image_digest(image))
        if self._leaders is not None:
            self._replicas.check_at_end(self._leaders.newest)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every partition has a leader and all its replicas in the ISR."""
        return self._leaders is None or self._replicas.is_fully_replicated(self._leaders.newest)

    def check_fully_replicated(self) -> None:
        if self._leaders is not None and not self.is_fully_replicated:
            raise Violation(WHOLE_AGAIN, "; ".join(self._replicas.missing(self._leaders.newest)))

    @property
    def agree(self) -> bool:
        """Whether every node has applied everything that is in the log of any node."""
        nodes = [machine.node for machine in self._machines if machine.node is not None and is_open(machine.node)]
        ends = {node.metadata.log.next_offset for node in nodes} | {node.image.offset + 1 for node in nodes}
        return len(nodes) == len(self._machines) and len(ends) == 1


def is_open(node: Node) -> bool:
    """Whether it has a metadata log to look at."""
    return hasattr(node, "metadata") and node.metadata.log._core is not None
