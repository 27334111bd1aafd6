"""The voters of the metadata quorum: the same on all nodes at each committed offset, and one change at a time.

Voters belong to offsets of the log: a node that truncates, or starts from a snapshot, goes back to earlier ones.
"""

from collections.abc import Sequence
from itertools import pairwise

from quire.raft.control_state import NO_VOTERS, ControlState
from quire.raft.metadata_log import MetadataLog
from quire.raft.replicas import VoterSet
from simulator.violation import Violation

SAME_VOTERS = "nodes that have committed the same offset have the same voters"
ONE_CHANGE = "the voters change one at a time, and each change is committed before the next"


class VoterCheck:
    def __init__(self) -> None:
        self._committed: dict[int, tuple[ControlState, str]] = {}
        """Per offset, the state below it and the node that had it first."""

    def check(self, node: str, log: MetadataLog) -> None:
        assert log._core is not None
        history = log._core.control
        for before, after in pairwise(history.since(0)):
            if before.voters is not None and after.voters is not None:
                self.changes(node, before.voters, after.voters)
        committed = log._core.high_watermark
        # Before its first commit a leader does not know how much is committed.
        if log._core.is_leader and committed is not None and committed > log._core.epoch_start_offset:
            self.leads(node, [state.voters for state in history.since(committed)])
        offset = log.high_watermark
        if offset and offset >= log.start_offset:
            self.has_committed(node, offset, history.at(offset))

    def changes(self, node: str, before: VoterSet, after: VoterSet) -> None:
        """Any majority of the former voters and any of the later ones have one in common."""
        changed = {voter.key for voter in before} ^ {voter.key for voter in after}
        if len(changed) > 1:
            raise Violation(ONE_CHANGE, f"{node} has {_listed(before)}, then {_listed(after)}")

    def leads(self, node: str, uncommitted: Sequence[VoterSet | None]) -> None:
        """The last voters that are committed, and those after them."""
        if len(uncommitted) > 2:
            told = ", then ".join(_listed(voters or NO_VOTERS) for voters in uncommitted)
            raise Violation(ONE_CHANGE, f"{node} has {told}, and only the first are committed")

    def has_committed(self, node: str, offset: int, state: ControlState) -> None:
        first, witness = self._committed.setdefault(offset, (state, node))
        if first != state:
            raise Violation(SAME_VOTERS, f"at {offset}, {witness} has {_told(first)}, and {node} has {_told(state)}")


def _told(state: ControlState) -> str:
    voters = "no voters" if state.voters is None else _listed(state.voters)
    return f"kraft.version {state.kraft_version} with {voters}"


def _listed(voters: VoterSet) -> str:
    return ", ".join(f"{voter.key.id}/{voter.key.directory_id.hex()[:6]}" for voter in voters)
