"""What keeps state from the metadata log, and which leader was reported to it.

The listener may know less than the consensus core: a new leader first has to commit everything before its term, and a
full disk holds back effects. So who leads the quorum is one question (`RaftCore`), and whether the listener may act as
the leader is another (`ReportedLeader`).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from quire.raft.core import RaftCore
from quire.raft.log_store import CommittedBatch
from quire.raft.snapshot_file import Snapshot
from quire.raft.snapshot_taker import SnapshotContent


class LogListener(Protocol):
    """Keeps state from the log. Called on the event loop, in the order of the log, but for `prepare_snapshot`."""

    def prepare_snapshot(self, snapshot: Snapshot) -> Callable[[], None]:
        """Builds the state that a snapshot holds; changes nothing, because it is called in a job.

        The result is called on the event loop if the snapshot replaces the state. It may raise MetadataLogError.
        """
        ...

    def committed(self, batches: Sequence[CommittedBatch]) -> None: ...

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        """With this node as the leader only after everything that was committed before its term."""
        ...

    def snapshot_content(self) -> SnapshotContent | None:
        """The state after the last committed batch; None in the middle of a metadata transaction."""
        ...


class ReportedLeader:
    """Tells the listener of leaders, each once."""

    __slots__ = ("_listener", "_node_id", "_reported")

    def __init__(self, node_id: int, listener: LogListener) -> None:
        self._node_id = node_id
        self._listener = listener
        self._reported: tuple[int | None, int] = (None, -1)

    def is_this_node(self, core: RaftCore) -> bool:
        """Whether this node leads, and its listener knows."""
        return core.is_leader and self._reported == (self._node_id, core.epoch)

    def report(self, leader_id: int | None, epoch: int) -> None:
        if self._reported != (leader_id, epoch):
            self._reported = (leader_id, epoch)
            self._listener.leader_changed(leader_id, epoch)

    def delivered(self, core: RaftCore, offset: int) -> None:
        """The listener has everything below the offset, which is all that is committed."""
        if core.is_leader and offset > core.epoch_start_offset:
            self.report(self._node_id, core.epoch)

    def end_term(self, core: RaftCore) -> None:
        """Tells it at once that a term of this node has ended: a full disk may hold back the effect that says so."""
        if self._reported[0] == self._node_id and not self.is_this_node(core):
            self.report(None if core.leader_id == self._node_id else core.leader_id, core.epoch)
