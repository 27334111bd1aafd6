"""Builds the result of an operation step by step: records to write, and responses to requests that wait.

Operations of both kinds of groups pass one builder through their steps and end with `result`. An operation that decides
everything in one place returns a `CoordinatorResult` directly.

The responses are sent after the records are committed. By then the operation is over, so a client that sends its next
request at once finds the group in its new state.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from quire.coordinators.runtime.machine import TimedOperation
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import CoordinatorResult
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode

R = TypeVar("R")


class ResultBuilder:
    __slots__ = ("_on_written", "_responses", "records")

    def __init__(self) -> None:
        self.records: list[StateRecord] = []
        self._responses: list[tuple[Pending[Any], Any]] = []
        self._on_written: Callable[[ErrorCode], None] | None = None

    def write(self, *records: StateRecord) -> None:
        self.records += records

    def write_only(self, record: StateRecord, on_written: Callable[[ErrorCode], None] | None = None) -> None:
        """Writes the single record of an operation. The runtime calls `on_written` as `when_written` of the result."""
        assert not self.records, "an operation on a classic group writes one record"
        self.records.append(record)
        self._on_written = on_written

    def respond(self, waiting: Pending[Any] | None, response: object) -> None:
        """Completes a request that waits, when the records are committed. If they are not, it gets that error."""
        if waiting is not None:
            self._responses.append((waiting, response))

    def result(self, response: R | Pending[R | ApiError]) -> CoordinatorResult[R]:
        has_followers = self._responses or self._on_written is not None
        return CoordinatorResult(response, self.records, self._written if has_followers else None)

    def respond_now(self) -> None:
        """Completes the waiting requests outside of an operation."""
        assert not self.records, "no operation writes these records"
        complete_all(self._responses)

    def _written(self, error: ErrorCode) -> None:
        if self._on_written is not None:
            self._on_written(error)
        complete_all(self._responses, error)


def timed(step: Callable[[int, ResultBuilder], None]) -> TimedOperation:
    """The operation that a timer runs: `step(now_ms, builder)`, then the builder's result."""

    def operation(now_ms: int) -> CoordinatorResult[None]:
        builder = ResultBuilder()
        step(now_ms, builder)
        return builder.result(None)

    return operation


def complete_all(responses: Iterable[tuple[Pending[Any], Any]], error: ErrorCode = ErrorCode.NONE) -> None:
    """Completes each request with its response, or all of them with the error."""
    for waiting, response in responses:
        waiting.complete_once(response if error is ErrorCode.NONE else ApiError(error))
