"""The error of this package for invalid bytes from a client or a file."""

from __future__ import annotations

from quire.protocol.errors import ApiError, ErrorCode


class InvalidRecords(ApiError):  # noqa: N818 - it says what it is, as Kafka's InvalidRecord does
    """A batch is refused, with the error code for the producer and the invalid records (KIP-467).

    `record_errors` has (index within the batch, sentence), and is empty if the batch as a whole is invalid.
    """

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]] | None = None) -> None:
        super().__init__(code, message)
        self.record_errors: list[tuple[int, str]] = [] if record_errors is None else record_errors


def corrupt(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.CORRUPT_MESSAGE, message)
