"""Prints the fetched records that match the filter, up to a limit, for `quire consume`."""

from quire.cli.records.filters import Filter
from quire.cli.records.record_format import Formatter
from quire.client.fetched import Fetched
from quire.client.offsets import TopicPartition
from quire.console.terminal import Output
from quire.protocol.records import Record


class Printer:
    """Prints the records that match the filter, up to a limit."""

    def __init__(self, out: Output, formatter: Formatter, wanted: Filter | None, count: int | None) -> None:
        self._out = out
        self._formatter = formatter
        self._wanted = wanted
        self._left = count
        self.printed = 0

    @property
    def full(self) -> bool:
        return self._left == 0

    def show_one(self, topic_partition: TopicPartition, record: Record) -> None:
        """Prints one record, if it matches; the caller has checked `full`, and flushes the output."""
        if self._wanted is not None and not self._wanted(record):
            return
        if self._left is not None:
            self._left -= 1
        self.printed += 1
        self._out.write(self._formatter(topic_partition, record))

    def flush(self) -> None:
        self._out.flush()

    def show(self, fetched: Fetched, end: int | None) -> int:
        """Prints the records before `end`, up to the limit, and returns the offset of the next one."""
        formatter, wanted, topic_partition = self._formatter, self._wanted, fetched.topic_partition
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
            lines.append(formatter(topic_partition, record))
        self.printed += len(lines)
        self._out.write(b"".join(lines))
        self._out.flush()
        return next_offset
