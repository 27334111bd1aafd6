"""What a manager returns: the records to write, all or none, and the response to give once they are committed."""

from collections.abc import Generator
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


Portions = Generator[list[Message], None, R]
"""What a manager of many things returns: the records of each, which are written all or none, and then the response.

A request that takes long is divided between two portions, so that others are served. The image that the manager was
given has the portions before in it then, and what other requests have changed since. An ApiError that is raised where
the manager yields says why that portion is not written."""


def collected(portions: Portions[R]) -> Result[R]:
    """All portions at once."""
    records: list[Message] = []
    while True:
        try:
            records += next(portions)
        except StopIteration as end:
            return Result(end.value, records)


def check_record_count(count: int) -> None:
    if count > MAX_RECORDS_PER_REQUEST:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"the request would take {count} records; ask for fewer partitions at once, at most about "
            f"{MAX_RECORDS_PER_REQUEST}",
        )
