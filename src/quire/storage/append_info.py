"""The result of an append. `Log` returns it, and the produce handler answers with it."""


class AppendInfo:
    """The offsets and timestamp of an append."""

    __slots__ = ("base_offset", "last_offset", "log_start_offset", "max_timestamp")

    def __init__(self, base_offset: int, last_offset: int, log_start_offset: int, max_timestamp: int) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_start_offset = log_start_offset
        self.max_timestamp = max_timestamp
