"""What an operation of a state machine returns: the records it wants written, and what to answer when they are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from quire.coordinators.runtime.record import StateRecord
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode

R = TypeVar("R")


class WrittenBy(NamedTuple):
    """The transaction that records are part of: they count when it is committed."""

    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class Result(Generic[R]):
    """`records` are replayed at once and appended together; `response` is given when they are committed.

    Also a response without records waits, for whatever was written before it: it may rest on that. A `Pending` in place
    of a response is not held back by the runtime: the machine completes it when it likes (a member that waits for the
    others), possibly from a `when_written`. `when_written` is called with NONE when the records are committed, or with
    the reason why nobody knows; then the machine is about to be thrown away and may only answer whom it let wait.
    To refuse a request, an operation raises ApiError, and has changed nothing.

    Records that nobody waits for (`can_wait`) are appended together with those that come next, or a moment later.
    """

    response: R | Pending[R | ApiError]
    records: Sequence[StateRecord] = ()
    when_written: Callable[[ErrorCode], None] | None = None
    transaction: WrittenBy | None = None
    can_wait: bool = False
