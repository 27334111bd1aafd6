"""The entries of a segment's indexes, compared with the log if it exists.

A running Apache Kafka allocates an index at full size; entries of zeros are not used yet. Entries are read in chunks.
"""

from collections.abc import Iterator
from struct import Struct

from quire.cli.storage.dump.facts import Fact, problem
from quire.protocol.records import BatchHeader
from quire.seams import ReadableFile
from quire.storage.indexes.offset_index import OffsetIndex
from quire.storage.indexes.time_index import NO_TIMESTAMP, TimeIndex
from quire.storage.indexes.transaction_index import VERSION, TransactionIndex
from quire.storage.scanning import batch_scan
from quire.storage.scanning.batch_scan import DamagedBatchError

_CHUNK_ENTRIES = 8192

Entry = tuple[int, tuple[int, ...]]


def dump_offset_index(file: ReadableFile, base_offset: int, log: ReadableFile | None) -> Iterator[Fact]:
    """Yields `index_entry` facts; a `problem` for each that does not lead to the start of a batch; `index_end`."""
    entries = _Entries(file, OffsetIndex.ENTRY)
    previous = -1
    log_size = 0 if log is None else log.size()
    for at, (relative, position) in entries:
        yield Fact("index_entry", {"offset": base_offset + relative, "position": position})
        if relative <= previous:
            yield problem(at, f"offset {base_offset + relative} comes after {base_offset + previous}")
        previous = relative
        if log is not None:
            wrong = _wrong_position(log, log_size, base_offset + relative, position)
            if wrong is not None:
                yield problem(at, f"offset {base_offset + relative}: {wrong}")
    yield from entries.ending(compared=log is not None)


def _wrong_position(log: ReadableFile, log_size: int, last_offset: int, position: int) -> str | None:
    if not 0 <= position < log_size:
        return f"position {position} is outside the log, which has {log_size} bytes"
    try:
        _, header = next(batch_scan.headers(log, position, log_size))
    except DamagedBatchError as damage:
        return f"at position {position} of the log no batch begins ({damage.reason})"
    # An entry may stand for a whole append, and lead to its first batch.
    if header.last_offset > last_offset:
        return f"at position {position} of the log begins a batch that ends at offset {header.last_offset}"
    return None


def dump_time_index(file: ReadableFile, base_offset: int, log: ReadableFile | None) -> Iterator[Fact]:
    """Yields `time_index_entry` facts; a `problem` for each that is not the highest timestamp so far; `index_end`."""
    entries = _Entries(file, TimeIndex.ENTRY)
    previous = NO_TIMESTAMP
    highest = None if log is None else _HighestSoFar(log)
    for at, (timestamp, relative) in entries:
        offset = base_offset + relative
        yield Fact("time_index_entry", {"timestamp": timestamp, "offset": offset})
        if timestamp <= previous:
            yield problem(at, f"timestamp {timestamp} comes after {previous}")
        previous = timestamp
        if highest is not None:
            found = highest.up_to(offset)
            if found != timestamp:
                so_far = "there is no batch" if found is None else f"the highest timestamp is {found}"
                yield problem(at, f"{timestamp} at offset {offset} but in the log up to there {so_far}")
    yield from entries.ending(compared=log is not None)


def dump_transaction_index(file: ReadableFile) -> Iterator[Fact]:
    """Yields `aborted_transaction` facts; a `problem` for each that is not possible; `index_end`."""
    entries = _Entries(file, TransactionIndex.ENTRY)
    previous = -1
    for at, (version, producer_id, first_offset, last_offset, last_stable_offset) in entries:
        if version != VERSION:
            yield problem(at, f"an entry of version {version}, but only {VERSION} is known")
        yield Fact(
            "aborted_transaction",
            {
                "producer_id": producer_id,
                "first_offset": first_offset,
                "last_offset": last_offset,
                "last_stable_offset": last_stable_offset,
            },
        )
        if last_offset <= previous:
            yield problem(
                at, f"a transaction that ends at offset {last_offset} comes after one that ends at {previous}"
            )
        if not 0 <= first_offset <= last_offset:
            yield problem(at, f"a transaction from offset {first_offset} to {last_offset}")
        previous = last_offset
    yield from entries.ending(compared=False)


class _HighestSoFar:
    """Reads a log once, for rising offsets."""

    def __init__(self, log: ReadableFile) -> None:
        self._batches = batch_scan.headers(log, 0, log.size())
        self._next: BatchHeader | None = None
        self._highest: int | None = None

    def up_to(self, offset: int) -> int | None:
        """The highest timestamp of the batches that end at `offset` or before; None if the log ends earlier."""
        while (header := self._next or self._advance()) is not None and header.last_offset <= offset:
            self._highest = max(header.max_timestamp, -1 if self._highest is None else self._highest)
            self._next = None
        return self._highest

    def _advance(self) -> BatchHeader | None:
        try:
            self._next = next(self._batches, (0, None))[1]
        except DamagedBatchError:
            self._next = None
        return self._next


class _Entries:
    """Yields (position in the file, fields) of each entry in use; then problems at the end of the file."""

    def __init__(self, file: ReadableFile, entry: Struct) -> None:
        self._file = file
        self._entry = entry
        self._used = 0

    def __iter__(self) -> Iterator[Entry]:
        size = self._entry.size
        while True:
            start = self._used * size
            chunk = self._file.pread(_CHUNK_ENTRIES * size, start)
            for at in range(0, len(chunk) - size + 1, size):
                if not any(chunk[at : at + size]):
                    return
                self._used += 1
                yield start + at, self._entry.unpack_from(chunk, at)
            if len(chunk) < _CHUNK_ENTRIES * size:
                return

    def ending(self, compared: bool) -> Iterator[Fact]:
        size, total = self._entry.size, self._file.size()
        unused, odd = divmod(total - self._used * size, size)
        not_zero = self._first_byte_in_use(self._used * size)
        if unused and not_zero is not None:
            yield problem(not_zero, "entries follow after entries of zeros")
        if odd:
            yield problem(total - odd, f"{odd} bytes at the end, but an entry has {size}")
        yield Fact("index_end", {"entries": self._used, "unused_entries": unused, "compared_with_log": compared})

    def _first_byte_in_use(self, position: int) -> int | None:
        step = _CHUNK_ENTRIES * self._entry.size
        while chunk := self._file.pread(step, position):
            if any(chunk):
                return position + next(at for at, byte in enumerate(chunk) if byte)
            position += len(chunk)
        return None
