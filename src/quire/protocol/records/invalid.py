"""The one error this package raises about bytes that came from outside."""

from __future__ import annotations

from quire.protocol.errors import ApiError, ErrorCode


class InvalidRecords(ApiError):  # noqa: N818 - it says what it is, as Kafka's InvalidRecord does
    """A batch that is refused, with the code a producer gets, and which of its records were at fault (KIP-467).

    `record_errors` holds (index within the batch, sentence), and is empty when the batch as a whole is at fault.
    """

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]] | None = None) -> None:
        super().__init__(code, message)
        self.record_errors: list[tuple[int, str]] = [] if record_errors is None else record_errors


def corrupt(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.CORRUPT_MESSAGE, message)
