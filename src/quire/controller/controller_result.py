"""What a manager returns: records, which are written all or none, and the response to send once they are committed."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.schema import Message

R = TypeVar("R")

MAX_RECORDS_PER_REQUEST = 10_000
"""As in Kafka: one request is one batch, and a batch has a limit."""


@dataclass(slots=True)
class ControllerResult(Generic[R]):
    response: R
    records: list[Message] = field(default_factory=list)


Portions = Generator[list[Message], None, R]
"""The result of a manager that changes many things: a list of records for each, and at the end the response.

Each list is written all or none. Between two of them other requests may run, so a long request does not delay them.
After each yield the manager's image contains that portion, and what those requests changed. If a portion cannot be
written, the runner throws an ApiError into the generator at that yield."""


def collected(portions: Portions[R]) -> ControllerResult[R]:
    """All portions at once."""
    records: list[Message] = []
    while True:
        try:
            records += next(portions)
        except StopIteration as end:
            return ControllerResult(end.value, records)


def check_record_count(count: int) -> None:
    if count > MAX_RECORDS_PER_REQUEST:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"the request would take {count} records; ask for fewer partitions at once, at most about "
            f"{MAX_RECORDS_PER_REQUEST}",
        )
