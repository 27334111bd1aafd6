"""Compacts a log in a test: batches with keys, a complete cleaning run, and the content of the log afterwards."""

from collections.abc import Mapping, Sequence

from quire.protocol.records import Compression
from quire.protocol.records.batch import BatchHeader, check_crc, walk_batches
from quire.protocol.records.builder import build_batch
from quire.protocol.records.reader import decode_batch
from quire.protocol.records.record import Record
from quire.seams import Disk
from quire.storage.cleaning.cleanable import Cleanable
from quire.storage.cleaning.cleaning_run import CleaningRun, Limits
from quire.storage.cleaning.work import Cleaned, Ready, Work
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from tests.storage.batches import NOW_MS, read

COMPACTED = LogConfig(compact=True, delete=False, segment_bytes=1 << 20, delete_retention_ms=1000)

Entry = tuple[bytes | None, bytes | None]
"""Key and value of a record."""


def keyed(
    *entries: Entry,
    timestamp: int = NOW_MS,
    compression: Compression = Compression.NONE,
    producer_id: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    timestamp_type: int = 0,
) -> bytearray:
    """A batch of records whose timestamps rise by one."""
    return build_batch(
        [Record(0, timestamp + index, key, value) for index, (key, value) in enumerate(entries)],
        compression=compression,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=sequence,
        transactional=transactional,
        timestamp_type=timestamp_type,
    )


def limits(table_bytes: int = 1 << 20, load_factor: float = 0.9, buffer_bytes: int = 1 << 16) -> Limits:
    return Limits(table_bytes, load_factor, buffer_bytes, 1 << 24)


def compact_once(
    disk: Disk,
    log: Log,
    first_dirty: int = 0,
    *,
    upper: int | None = None,
    now_ms: int = NOW_MS,
    using: Limits | None = None,
) -> int:
    """One run over all completed segments (or those before `upper`); returns the offset up to which the log is
    clean."""
    upper = log.segments[-1].base_offset if upper is None else upper
    if upper <= first_dirty:
        return first_dirty
    run = CleaningRun(log, Cleanable(first_dirty, upper, 0, 1, False), using or limits(), bytes(range(16)), now_ms)
    work = Work(disk, run)
    while not isinstance(event := work.step(), Cleaned):
        if isinstance(event, Ready):
            assert log.replace_segments(run.segments[event.start : event.stop], event.cleaned.size)
    return event.end_offset


def compact(disk: Disk, log: Log, first_dirty: int = 0, *, now_ms: int = NOW_MS, using: Limits | None = None) -> int:
    """As many runs as necessary."""
    upper = log.segments[-1].base_offset
    while first_dirty < upper:
        first_dirty = compact_once(disk, log, first_dirty, now_ms=now_ms, using=using)
    return first_dirty


def batches_of(log: Log, max_bytes: int = 1 << 20) -> list[tuple[BatchHeader, list[Record]]]:
    """Every batch that a reader gets from the start on: intact, in order, none twice."""
    found: list[tuple[BatchHeader, list[Record]]] = []
    offset = log.start_offset
    while (part := read(log, offset, max_bytes)) is not None:
        data = part.read()
        assert len(data) == len(part), f"{part} is longer than its file"
        headers = walk_batches(data)
        assert headers, f"nothing whole in {part}"
        for header in headers:
            check_crc(data, header)
            assert header.last_offset >= offset, f"{header} was read before"
            records = decode_batch(data, header) if header.record_count else []
            assert all(header.base_offset <= record.offset <= header.last_offset for record in records)
            found.append((header, records))
            offset = header.next_offset
    return found


def entries_of(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of all records that are not control records."""
    return [
        (record.offset, record.key, record.value)
        for header, records in batches_of(log)
        if not header.is_control
        for record in records
    ]


def latest(entries: Sequence[tuple[int, bytes | None, bytes | None]]) -> Mapping[bytes, bytes]:
    """The last value of each key."""
    table: dict[bytes, bytes] = {}
    for _, key, value in entries:
        if key is not None:
            table.pop(key, None)
            if value is not None:
                table[key] = value
    return table
