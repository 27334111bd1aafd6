"""Filtering of a batch that is compressed, part of a transaction, or a control batch.

The rules for plain batches (`filter_native.filter_batches`) apply, and those of transactions. Base offset, last offset,
epoch, producer and sequence number stay as they were, because readers and producers rely on them.
"""

from quire.protocol.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    BatchHeader,
)
from quire.protocol.records.compression import compress
from quire.protocol.records.invalid import corrupt
from quire.protocol.records.reader import records_section
from quire.protocol.records.rewrite import rebuild
from quire.seams import Buffer
from quire.storage.cleaning.cleaning_run import CleaningRun
from quire.storage.cleaning.filter_native import retain_records
from quire.storage.cleaning.key_table_native import KeyTable
from quire.storage.cleaning.transactions import CleanedTransactions

_RECORD_GROWTH = 16
_NO_TIMESTAMP = -1


def filter_batch(
    data: Buffer,
    header: BatchHeader,
    table: KeyTable,
    latest_offset: int,
    run: CleaningRun,
    transactions: CleanedTransactions,
) -> Buffer:
    """The batch unchanged, a smaller one, or nothing. The caller has checked its checksum."""
    horizon_passed = header.has_delete_horizon and header.base_timestamp <= run.now_ms
    if header.is_control:
        unneeded = transactions.on_control_batch(header, data)
        if header.record_count == 0 or (unneeded and horizon_passed):
            return _emptied(header, run)
        if unneeded and not header.has_delete_horizon:
            return _retained(data, header, table, -1, run)
        return _whole(data, header)
    if transactions.on_batch(header) or header.record_count == 0:
        return _emptied(header, run)
    return _retained(data, header, table, latest_offset, run, horizon_passed)


def _whole(data: Buffer, header: BatchHeader) -> Buffer:
    return memoryview(data)[header.position : header.end]


def _retained(
    data: Buffer,
    header: BatchHeader,
    table: KeyTable,
    latest_offset: int,
    run: CleaningRun,
    drop_tombstones: bool = False,
) -> Buffer:
    section = records_section(data, header, run.limits.decompressed_bytes)
    out = memoryview(bytearray(len(section) + header.record_count * _RECORD_GROWTH))

    def retain(shift: int | None) -> tuple[int, int, bool, int]:
        count, base = header.record_count, header.base_offset
        kept = retain_records(table, section, count, base, latest_offset, drop_tombstones, shift, out)
        if kept[0] < 0:
            raise corrupt(f"the records of the batch at offset {header.base_offset} cannot be read")
        return kept

    size, count, tombstones, latest_delta = retain(None)
    if count == 0:
        return _emptied(header, run)
    new_horizon = (tombstones or header.is_control) and not header.has_delete_horizon
    if count == header.record_count and not new_horizon:
        return _whole(data, header)
    append_time = header.attributes & LOG_APPEND_TIME_BIT
    max_timestamp = header.max_timestamp if append_time else header.base_timestamp + latest_delta
    attributes, base_timestamp = header.attributes, header.base_timestamp
    if new_horizon:
        attributes, base_timestamp = attributes | DELETE_HORIZON_BIT, run.new_horizon_ms
        size, count, _, _ = retain(base_timestamp - header.base_timestamp)
    return rebuild(
        header,
        compress(header.compression, out[:size]),
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=count,
    )


def _emptied(header: BatchHeader, run: CleaningRun) -> Buffer:
    """Nothing, or an empty batch if it is the last of its producer or has the last offset of the cleaned range."""
    if not run.stays_if_empty(header):
        return b""
    return rebuild(
        header,
        b"",
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
        base_timestamp=_NO_TIMESTAMP,
        max_timestamp=header.max_timestamp,
        record_count=0,
    )
