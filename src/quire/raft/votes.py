"""Counting: who granted and who refused, and whether that decides it."""

from quire.raft.replicas import ReplicaKey, VoterSet


class Votes:
    """The votes of one round. The replica that counts has voted for itself."""

    __slots__ = ("_answers", "_voters")

    def __init__(self, voters: VoterSet, own: ReplicaKey) -> None:
        self._voters = voters
        self._answers = {own.id: True} if voters.includes(own) else {}

    def count(self, voter_id: int, granted: bool) -> None:
        """A voter's first answer stands; whoever does not vote is not counted."""
        if self._voters.get(voter_id) is not None:
            self._answers.setdefault(voter_id, granted)

    @property
    def won(self) -> bool:
        return sum(self._answers.values()) >= self._voters.majority

    @property
    def lost(self) -> bool:
        refused = len(self._answers) - sum(self._answers.values())
        return refused > len(self._voters) - self._voters.majority

    @property
    def granting(self) -> tuple[ReplicaKey, ...]:
        return tuple(voter.key for voter in self._voters if self._answers.get(voter.key.id))
