"""Resigned: led this epoch and no longer does, because it stops, restarted, or lost contact with the majority.

It must not lead the epoch again, because it may have forgotten what it promised. It tells the other voters, so that
they need not wait for a timeout, and then looks for the next leader like any other voter.
"""

from typing import ClassVar

from quire.raft.messages import EndEpoch
from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.roles.leader import Leader
from quire.raft.roles.role import Become, Kind, Role


class Resigned(Role):
    __slots__ = ("_successors",)
    kind: ClassVar[Kind] = Kind.RESIGNED

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: Role | None) -> None:
        super().__init__(replica, election, now_ms, previous)
        self.deadline_ms = now_ms + self._patience_ms(replica, previous)
        by_progress = previous.voters_by_progress(replica) if isinstance(previous, Leader) else None
        self._successors = replica.voters.other_keys(replica.key) if by_progress is None else by_progress

    def _patience_ms(self, replica: Replica, previous: Role | None) -> int:
        """The others go first. After a restart they may all have shorter logs, so this replica soon follows."""
        if not replica.may_campaign:
            return replica.settings.retry_backoff_ms
        if previous is None:
            return 4 * replica.settings.quick_election_jitter_ms + 4 * replica.quick_election_jitter_ms()
        return replica.random_election_timeout_ms()

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        message = EndEpoch(self.epoch, replica.key.id, tuple(self._successors))
        for successor in self._successors:
            replica.send(successor.id, message)
        if replica.is_only_voter and replica.may_campaign:
            return Become(Kind.PROSPECTIVE, self.election)
        return None

    def timed_out(self, replica: Replica, now_ms: float) -> Become | None:
        if replica.stopping:
            self.deadline_ms = now_ms + replica.settings.election_timeout_ms
            return None
        return Become(Kind.PROSPECTIVE if replica.may_campaign else Kind.UNATTACHED, self.election)
