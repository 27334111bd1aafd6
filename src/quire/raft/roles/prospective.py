"""Prospective: asks whether an election could be won before it starts one (pre-vote, KIP-996).

This role promises nothing and keeps the epoch, so a replica that was cut off for a while cannot unseat a leader that a
majority still follows. If others still follow the leader, this replica does so again too.
"""

from typing import ClassVar

from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.roles.campaigning import Campaigning
from quire.raft.roles.role import Become, Kind


class Prospective(Campaigning):
    __slots__ = ()
    kind: ClassVar[Kind] = Kind.PROSPECTIVE
    pre_vote: ClassVar[bool] = True

    def won(self, replica: Replica) -> Become:
        return Become(Kind.CANDIDATE, Election(self.epoch + 1, voted=replica.key))

    def lost(self, replica: Replica) -> Become:
        has_leader = self.known_leader(replica) is not None
        return Become(Kind.FOLLOWER if has_leader else Kind.UNATTACHED, self.election)

    def undecided(self, replica: Replica) -> Become:
        # The voters may all have been replaced since this replica last fetched.
        self.look_for_leader(replica, replica.bootstrap)
        return self.lost(replica)
