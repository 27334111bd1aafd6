"""How a group chooses its protocol, a consumer's assignor: what all members can, and most of them prefer."""

from collections.abc import Collection, Iterable

from quire.coordinators.group.classic.member import Protocols


class ProtocolVote:
    """Counts who supports what, so that a join costs the same in a small and in a large group."""

    __slots__ = ("_members", "_supporters")

    def __init__(self) -> None:
        self._members = 0
        self._supporters: dict[str, int] = {}

    def enter(self, protocols: Protocols) -> None:
        self._members += 1
        for name in protocols:
            self._supporters[name] = self._supporters.get(name, 0) + 1

    def withdraw(self, protocols: Protocols) -> None:
        self._members -= 1
        for name in protocols:
            left = self._supporters[name] - 1
            if left:
                self._supporters[name] = left
            else:
                del self._supporters[name]

    def supports_any(self, names: Iterable[str]) -> bool:
        """Whether one of these is supported by every member; in an empty group all are."""
        return any(self._supporters.get(name, 0) == self._members for name in names)

    def winner(self, ballots: Collection[Protocols]) -> str:
        """The protocol of most votes; each member's goes to its first choice among those that all support. Of equals,
        the one that was voted for first."""
        votes: dict[str, int] = {}
        for ballot in ballots:
            choice = next(name for name in ballot if self._supporters[name] == self._members)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)
