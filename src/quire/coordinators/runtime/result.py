"""What an operation of a state machine returns: records to write, and the response to send when they are committed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from quire.coordinators.runtime.record import StateRecord
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode

R = TypeVar("R")


class WrittenBy(NamedTuple):
    """The transaction that the records are part of. They take effect when it is committed."""

    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class CoordinatorResult(Generic[R]):
    """The runtime replays `records` at once and appends them together. It sends `response` when they are committed.

    A response without records waits as well, for the records that were written before it: it may depend on them. A
    `Pending` as response is not delayed by the runtime. The machine completes it later, for example in `when_written`
    or when all members of a group have joined.

    The runtime calls `when_written` with NONE when the records are committed. Otherwise it calls it with an error. If
    that is not MESSAGE_TOO_LARGE, the machine is about to be discarded and may only complete requests that wait in it.

    Records that no request waits for (`can_wait`) are appended together with the next ones, or a moment later.

    To refuse a request, an operation raises ApiError. It must not have changed anything before.
    """

    response: R | Pending[R | ApiError]
    records: Sequence[StateRecord] = ()
    when_written: Callable[[ErrorCode], None] | None = None
    transaction: WrittenBy | None = None
    can_wait: bool = False
