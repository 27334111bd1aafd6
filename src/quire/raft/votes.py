"""A round of votes: which voters granted and which refused, which to retry, and whether the election is decided."""

from math import inf

from quire.raft.replicas import ReplicaKey, VoterSet


class VoteRound:
    """The votes of one round. The replica that counts has voted for itself, if it is a voter."""

    __slots__ = ("_answers", "_unreached", "_voters", "ask_again_at_ms")

    def __init__(self, voters: VoterSet, own: ReplicaKey) -> None:
        self._voters = voters
        self._answers = {own.id: True} if voters.includes(own) else {}
        self._unreached: set[int] = set()
        self.ask_again_at_ms = inf

    def count(self, voter_id: int, granted: bool) -> None:
        """The first answer of a voter counts, and those of other replicas do not."""
        if self._voters.get(voter_id) is not None:
            self._answers.setdefault(voter_id, granted)

    def unreached(self, voter_id: int, ask_again_at_ms: float) -> None:
        """A request got no answer. It is repeated, because the voter may only be starting."""
        if self._voters.get(voter_id) is not None and voter_id not in self._answers:
            self._unreached.add(voter_id)
            self.ask_again_at_ms = min(self.ask_again_at_ms, ask_again_at_ms)

    def take_unreached(self) -> list[ReplicaKey]:
        """The voters whose request must be sent again now."""
        unreached = [voter.key for voter in self._voters if voter.key.id in self._unreached]
        self._unreached.clear()
        self.ask_again_at_ms = inf
        return [key for key in unreached if key.id not in self._answers]

    @property
    def won(self) -> bool:
        return sum(self._answers.values()) >= self._voters.majority

    @property
    def lost(self) -> bool:
        """Too many refused; or some did, and the others cannot be reached: a later round may succeed."""
        refused = len(self._answers) - sum(self._answers.values())
        if refused > len(self._voters) - self._voters.majority:
            return True
        return refused > 0 and not self.won and len(self._answers.keys() | self._unreached) == len(self._voters)

    @property
    def granting(self) -> tuple[ReplicaKey, ...]:
        return tuple(voter.key for voter in self._voters if self._answers.get(voter.key.id))
