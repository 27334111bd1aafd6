"""What an operation has brought about so far: records to be written, and answers to those who waited.

Answers are given when the operation is over and its records are committed: whoever is answered may come back at once,
and must find the group as it is then.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from quire.coordinators.runtime.machine import TimedOperation
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import Result
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode

R = TypeVar("R")


class Outcome:
    __slots__ = ("_answers", "_then", "records")

    def __init__(self) -> None:
        self.records: list[StateRecord] = []
        self._answers: list[tuple[Pending[Any], Any]] = []
        self._then: Callable[[ErrorCode], None] | None = None

    def answer(self, waiting: Pending[Any] | None, response: object) -> None:
        if waiting is not None:
            self._answers.append((waiting, response))

    def write(self, record: StateRecord, then: Callable[[ErrorCode], None] | None = None) -> None:
        """`then` is called like `Result.when_written`."""
        assert not self.records, "an operation changes one group, and writes it once"
        self.records.append(record)
        self._then = then

    def result(self, response: R | Pending[R | ApiError]) -> Result[R]:
        return Result(response, self.records, self._written if self._answers or self._then is not None else None)

    def give(self) -> None:
        """To those who waited, outside of an operation."""
        assert not self.records, "nobody would write these"
        give(self._answers)

    def _written(self, error: ErrorCode) -> None:
        if self._then is not None:
            self._then(error)
        give(self._answers, error)


def timed(step: Callable[[int, Outcome], None]) -> TimedOperation:
    """`step`, which is given (now_ms, outcome), as what a timer runs."""

    def operation(now_ms: int) -> Result[None]:
        outcome = Outcome()
        step(now_ms, outcome)
        return outcome.result(None)

    return operation


def give(answers: Sequence[tuple[Pending[Any], Any]], error: ErrorCode = ErrorCode.NONE) -> None:
    """To each its own, or to all the same error."""
    for waiting, response in answers:
        waiting.complete_once(response if error is ErrorCode.NONE else ApiError(error))
