"""One record as producers send it and consumers get it, outside of a batch."""

from __future__ import annotations

Header = tuple[str, bytes | None]

NO_TIMESTAMP = -1


class Record:
    """A key and a value, either of which may be null, with a timestamp in milliseconds and any number of headers."""

    __slots__ = ("headers", "key", "offset", "timestamp", "value")

    def __init__(
        self,
        offset: int = 0,
        timestamp: int = NO_TIMESTAMP,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: list[Header] | None = None,
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers: list[Header] = [] if headers is None else headers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (
            self.offset == other.offset
            and self.timestamp == other.timestamp
            and self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r})"
        )
