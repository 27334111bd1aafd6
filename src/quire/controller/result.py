"""What a manager returns: the records to write, all or none, and the response to give once they are committed."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.schema import Message

R = TypeVar("R")

MAX_RECORDS_PER_REQUEST = 10_000
"""As in Kafka: one request is one batch, and a batch has a limit."""


@dataclass(slots=True)
class Result(Generic[R]):
    response: R
    records: list[Message] = field(default_factory=list)


def check_record_count(count: int) -> None:
    if count > MAX_RECORDS_PER_REQUEST:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"the request would take {count} records; ask for fewer partitions at once, at most about "
            f"{MAX_RECORDS_PER_REQUEST}",
        )
