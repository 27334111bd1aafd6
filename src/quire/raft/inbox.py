"""Requests of other replicas that the machine has not answered yet.

The machine answers by sending a message to the sender of the request. A replica may have several requests in progress,
on several connections, so each request gets a number of its own as its sender, above all node ids.
"""

from itertools import count

from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.raft.messages import EpochAnswer, FetchAnswer, VoteAnswer

FIRST_NUMBER = 1 << 32

Reply = VoteAnswer | EpochAnswer | FetchAnswer


class Inbox:
    __slots__ = ("_numbers", "_waiting")

    def __init__(self) -> None:
        self._numbers = count(FIRST_NUMBER)
        self._waiting: dict[int, Pending[Reply | ApiError]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self) -> tuple[int, Pending[Reply | ApiError]]:
        """The sender's number for a new request, and its answer."""
        number = next(self._numbers)
        pending: Pending[Reply | ApiError] = Pending(on_abandoned=lambda: self._forget(number))
        self._waiting[number] = pending
        return number, pending

    def holds(self, number: int) -> bool:
        """Whether a message to `number` answers a request. Those whose client has gone count too."""
        return number >= FIRST_NUMBER

    def answer(self, number: int, reply: Reply) -> None:
        pending = self._waiting.pop(number, None)
        if pending is not None:
            pending.complete(reply)

    def refuse_all(self, error: ApiError) -> None:
        waiting, self._waiting = self._waiting, {}
        for pending in waiting.values():
            pending.complete(error)

    def _forget(self, number: int) -> None:
        self._waiting.pop(number, None)
