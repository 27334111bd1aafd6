"""The metadata quorum: one leader and one active controller in each epoch, and high watermarks as they should be.

Two nodes may believe in different leaders at the same time, but not in the same epoch.
"""

from quire.raft.metadata_log import MetadataLog
from simulator.life import Life
from simulator.violation import Violation

ONE_LEADER = "an epoch of the metadata log has one leader"
ONE_CONTROLLER = "an epoch has one active controller"
WATERMARK = "the high watermark of the metadata log is at most its end, and never goes back while a node lives"


class QuorumCheck:
    def __init__(self) -> None:
        self._leaders: dict[int, tuple[int, str]] = {}
        """Per epoch, the leader and the node that said so first."""
        self._controllers: dict[int, str] = {}
        self._high_watermarks: dict[str, tuple[Life, int]] = {}

    def check(self, life: Life, log: MetadataLog, *, has_controller: bool) -> None:
        if log.leader_id is not None:
            self.believes(life.node, log.epoch, log.leader_id)
        if has_controller:
            self.controls(life.node, log.epoch)
        self.has_committed(life, log.high_watermark, log.next_offset)

    def believes(self, node: str, epoch: int, leader_id: int) -> None:
        """A node takes another, or itself, for the leader."""
        first, witness = self._leaders.setdefault(epoch, (leader_id, node))
        if first != leader_id:
            raise Violation(ONE_LEADER, f"epoch {epoch} has {first} for {witness}, and {leader_id} for {node}")

    def controls(self, node: str, epoch: int) -> None:
        first = self._controllers.setdefault(epoch, node)
        if first != node:
            raise Violation(ONE_CONTROLLER, f"in epoch {epoch} both {first} and {node} are active")

    def has_committed(self, life: Life, high_watermark: int, end_offset: int) -> None:
        if high_watermark > end_offset:
            raise Violation(WATERMARK, f"{life.node} has committed {high_watermark}, and its log ends at {end_offset}")
        before_life, before = self._high_watermarks.get(life.node, (life, 0))
        if before_life == life and high_watermark < before:
            raise Violation(WATERMARK, f"{life.node} went back from {before} to {high_watermark}")
        self._high_watermarks[life.node] = life, high_watermark

    @property
    def epochs(self) -> int:
        return len(self._leaders)
