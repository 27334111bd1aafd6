"""Prints fetched records for `quire consume`: those that a filter lets through, until there are enough."""

from quire.cli.filters import Filter
from quire.cli.record_format import Formatter
from quire.cli.terminal import Output
from quire.client.fetched import Fetched


class Printer:
    """Prints what the filter lets through, until it has printed enough."""

    def __init__(self, out: Output, formatter: Formatter, wanted: Filter | None, count: int | None) -> None:
        self._out = out
        self._formatter = formatter
        self._wanted = wanted
        self._left = count
        self.printed = 0

    @property
    def full(self) -> bool:
        return self._left == 0

    def show(self, fetched: Fetched, end: int | None) -> int:
        """Prints the records before `end`, as many as are wanted still; comes back with the offset of the next one."""
        formatter, wanted, place = self._formatter, self._wanted, fetched.place
        lines: list[bytes] = []
        next_offset = fetched.next_offset
        for record in fetched.records():
            if end is not None and record.offset >= end:
                next_offset = record.offset
                break
            if wanted is not None and not wanted(record):
                continue
            if self._left is not None:
                if self._left == 0:
                    next_offset = record.offset
                    break
                self._left -= 1
            lines.append(formatter(place, record))
        self.printed += len(lines)
        self._out.write(b"".join(lines))
        self._out.flush()
        return next_offset
