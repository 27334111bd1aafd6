"""Who has confirmed, after a request arrived, that this replica still leads (ReadIndex; Raft dissertation, 6.4).

A leader that lost its majority does not know it yet: another may lead a later epoch and have committed more. So what a
leader says about the whole log is current only if a majority of the voters was in its epoch after the request. A round
asks all voters at once, by an announcement that carries the round's number, and serves all requests that came before
it. Requests that come during a round wait for the next one.

A fetch would not do as a confirmation: it may have been sent before the request and be read after it.
"""

from quire.raft.replicas import ReplicaKey, VoterSet


class LeadershipChecks:
    """The requests of one leader, in one epoch, by their ids."""

    __slots__ = ("_checked", "_confirming", "_waiting", "number")

    def __init__(self) -> None:
        self.number = 0
        """Of the last round that began."""
        self._checked: list[int] = []
        """The requests that the round in progress is for; none if there is no round in progress."""
        self._confirming: set[int] = set()
        self._waiting: list[int] = []

    def add(self, request_id: int) -> None:
        self._waiting.append(request_id)

    def begin_round(self) -> bool:
        """Begins a round if a request waits for one and none is in progress; True if one begins."""
        if self._checked or not self._waiting:
            return False
        self.number += 1
        self._checked, self._waiting = self._waiting, []
        self._confirming.clear()
        return True

    def lacks(self, voter_id: int) -> bool:
        """Whether the round in progress has no answer of this voter."""
        return bool(self._checked) and voter_id not in self._confirming

    def confirm(self, voter_id: int, number: int) -> None:
        """A voter says in answer to round `number` that it is in this epoch."""
        if number == self.number:
            self._confirming.add(voter_id)

    def take_confirmed(self, voters: VoterSet, own: ReplicaKey) -> list[int]:
        """The requests of the round in progress, which ends, if a majority has confirmed; the leader counts too."""
        confirming = sum(id_ in self._confirming for id_ in voters.others(own)) + voters.includes(own)
        if confirming < voters.majority:
            return []
        confirmed, self._checked = self._checked, []
        return confirmed

    def take_all(self) -> list[int]:
        """The term has ended."""
        requests = [*self._checked, *self._waiting]
        self._checked, self._waiting = [], []
        return requests
