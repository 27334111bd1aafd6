"""Helpers that create batches and logs for the tests of this folder."""

from collections.abc import Callable

from quire.protocol.records.batch import BatchHeader, walk_batches
from quire.protocol.records.builder import build_batch
from quire.protocol.records.checksum import crc32c
from quire.protocol.records.control import ControlRecordType, build_control_batch
from quire.protocol.records.reader import iterate_records
from quire.protocol.records.record import Record
from quire.seams import Disk, FileSlice
from quire.storage.append_info import AppendInfo
from quire.storage.flushing.log_flush import FlushPlan
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.recovery.recovery_scan import MAX_OFFSET
from quire.storage.scanning.range_check import read_checked

FOLDER = "data/orders-0"
NOW_MS = 1_700_000_000_000
SMALL_SEGMENTS = LogConfig(segment_bytes=300, index_interval_bytes=100)


def batch(
    *values: bytes,
    timestamp: int = NOW_MS,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """A batch with these values, all with the same timestamp."""
    return build_batch(
        [Record(0, timestamp, None, value) for value in values or (b"value",)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        transactional=transactional,
        control=control,
    )


def letters(count: int) -> list[bytes]:
    """Values of which two fit into a segment of `SMALL_SEGMENTS`."""
    return [bytes([65 + at]) * 50 for at in range(count)]


def emptied(data: bytearray) -> bytearray:
    """The batch that compaction leaves if no record of a batch is retained: the header, with its offsets and
    timestamps."""
    left = data[:61]
    left[8:12] = (49).to_bytes(4, "big")
    left[57:61] = bytes(4)
    left[17:21] = crc32c(left[21:]).to_bytes(4, "big")
    return left


def marker(
    producer_id: int, *, aborts: bool, producer_epoch: int = 0, base_offset: int = 0, leader_epoch: int = 0
) -> bytearray:
    """A marker, which ends a transaction."""
    kind = ControlRecordType.ABORT if aborts else ControlRecordType.COMMIT
    return build_control_batch(
        [(kind, bytes(2) + (3).to_bytes(4, "big"))],
        NOW_MS,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def header(data: bytearray) -> BatchHeader:
    (only,) = walk_batches(data)
    return only


def open_log(
    disk: Disk,
    config: LogConfig | None = None,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    foreign: bool = False,
    high_watermark: int = MAX_OFFSET,
    folder: str = FOLDER,
    before_loss: Callable[[], None] = lambda: None,
) -> Log:
    disk.make_dirs(folder)
    return Log.open(
        disk,
        folder,
        config or LogConfig(),
        clean=clean,
        now_ms=NOW_MS,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        foreign=foreign,
        high_watermark=high_watermark,
        before_loss=before_loss,
    )


def append(log: Log, *batches: bytearray, leader_epoch: int = 0, now_ms: int = NOW_MS) -> AppendInfo:
    data = bytearray().join(batches)
    return log.append(data, walk_batches(data), leader_epoch, now_ms)


def append_values(log: Log, *values: bytes, leader_epoch: int = 0) -> AppendInfo:
    """Appends one batch for each value, each in a separate append; returns the result of the last one."""
    for value in values:
        info = append(log, batch(value), leader_epoch=leader_epoch)
    return info


def replicate(log: Log, *batches: bytearray) -> AppendInfo:
    data = bytearray().join(batches)
    return log.append_as_follower(data, walk_batches(data), NOW_MS)


def read(log: Log, offset: int, max_bytes: int = 1 << 20) -> FileSlice | None:
    return read_checked(lambda: log.read(offset, max_bytes))


def read_all(log: Log, start_offset: int | None = None, max_bytes: int = 1 << 20) -> list[tuple[int, bytes]]:
    """(offset, value) of every record, read as a consumer does: slice after slice."""
    offset = log.start_offset if start_offset is None else start_offset
    found: list[tuple[int, bytes]] = []
    while (part := read(log, offset, max_bytes)) is not None:
        headers = walk_batches(part.read())
        assert headers, f"nothing whole in {part}"
        for record in iterate_records(part.read()):
            if record.offset >= offset:
                found.append((record.offset, record.value or b""))
        offset = headers[-1].next_offset
    return found


def values_of(log: Log) -> list[bytes]:
    return [value for _, value in read_all(log)]


def finish_flush(log: Log, plan: FlushPlan) -> None:
    """Continues after the first run of a plan."""
    while not log.finish_flush(plan):
        plan.run()
