"""Questions of this node to its machine that the machine has not answered yet: changes of the voters, and checks."""

from itertools import count
from typing import Generic, TypeVar

from quire.pending import Pending

A = TypeVar("A")


class PendingAnswers(Generic[A]):
    __slots__ = ("_ids", "_waiting")

    def __init__(self) -> None:
        self._ids = count()
        self._waiting: dict[int, Pending[A]] = {}

    def add(self) -> tuple[int, Pending[A]]:
        """The id of a new request, and its answer."""
        request_id = next(self._ids)
        answer = self._waiting[request_id] = Pending()
        return request_id, answer

    def answer(self, request_id: int, answer: A) -> None:
        self._waiting.pop(request_id).complete(answer)

    def answer_all(self, answer: A) -> None:
        """The machine has stopped, and answers no more."""
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            each.complete(answer)
