"""Selects the group's protocol (a consumer's assignor): all members must support it, and most prefer it."""

from collections.abc import Collection, Iterable

from quire.coordinators.group.classic.member import Protocols


class ProtocolVote:
    """Counts the supporters of each protocol, so that a join costs the same in groups of any size."""

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
        """Whether all members support one of these. True for an empty group."""
        return any(self._supporters.get(name, 0) == self._members for name in names)

    def winner(self, ballots: Collection[Protocols]) -> str:
        """The protocol with the most votes.

        Each member votes for its first choice among those that all support. Of several with the same number, the one
        that was voted for first.
        """
        votes: dict[str, int] = {}
        for ballot in ballots:
            choice = next(name for name in ballot if self._supporters[name] == self._members)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)
