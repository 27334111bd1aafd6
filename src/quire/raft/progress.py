"""How far the replicas of a leader's log have come, and what that commits.

Only the leader keeps this. A voter's end offset is what it has on disk: a follower says so by the offset it fetches
from, the leader itself counts what it has synced.
"""

from dataclasses import dataclass
from math import inf

from quire.raft.replicas import ReplicaKey, VoterSet


@dataclass(slots=True)
class ReplicaProgress:
    """One replica's last news. Times are the machine's, `-inf` when it was never heard of."""

    key: ReplicaKey
    end_offset: int = -1
    fetched_at_ms: float = -inf
    caught_up_at_ms: float = -inf
    _leader_end_at_fetch: int = -1

    def fetched(self, offset: int, leader_end_offset: int, now_ms: float) -> None:
        """A fetch from `offset`: everything before it is durable over there."""
        if offset >= leader_end_offset:
            self.caught_up_at_ms = now_ms
        elif offset >= self._leader_end_at_fetch >= 0:
            self.caught_up_at_ms = max(self.caught_up_at_ms, self.fetched_at_ms)
        self.end_offset = max(self.end_offset, offset)
        self.fetched_at_ms = now_ms
        self._leader_end_at_fetch = leader_end_offset


def committed_offset(voters: VoterSet, end_offsets: dict[int, int]) -> int:
    """The offset a majority of the voters has reached."""
    reached = sorted((end_offsets.get(id_, -1) for id_ in voters.ids), reverse=True)
    return reached[voters.majority - 1]
