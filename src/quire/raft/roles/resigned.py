"""Resigned: led this epoch and does so no longer, because it stops, restarted, or lost touch with the majority.

It must not lead the epoch again: what it once promised in it may be forgotten. It tells the other voters, so that they
need not wait to notice, and later looks for the next leader like everybody else.
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
        self.deadline_ms = now_ms + replica.random_election_timeout_ms()
        by_progress = previous.voters_by_progress(replica) if isinstance(previous, Leader) else None
        self._successors = replica.voters.others(replica.key) if by_progress is None else by_progress

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        message = EndEpoch(self.epoch, replica.key.id, tuple(self._successors))
        for peer in self._successors:
            replica.send(peer, message)
        if replica.is_only_voter and not replica.stopping:
            return Become(Kind.PROSPECTIVE, self.election)
        return None

    def timed_out(self, replica: Replica, now_ms: float) -> Become | None:
        if replica.stopping:
            self.deadline_ms = now_ms + replica.settings.election_timeout_ms
            return None
        return Become(Kind.PROSPECTIVE if replica.is_voter else Kind.UNATTACHED, self.election)
