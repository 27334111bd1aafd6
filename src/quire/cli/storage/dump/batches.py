"""The batches of a log or of a metadata snapshot, with their records if requested.

Reading stops at the first damaged batch: after it, no length can be trusted to lead to another one.
"""

from collections.abc import Iterator

from quire.cli.storage.dump.contents import Decoder, decode_control
from quire.cli.storage.dump.facts import PROBLEM, Fact, problem
from quire.cli.storage.dump.wanted import Wanted
from quire.protocol.errors import ApiError
from quire.protocol.records import (
    LOG_APPEND_TIME,
    NO_PRODUCER_ID,
    BatchHeader,
    ControlRecordType,
    Record,
    decode_batch,
)
from quire.seams import ReadableFile
from quire.storage.indexes.offset_index import MAX_RELATIVE_OFFSET
from quire.storage.scanning import batch_scan
from quire.storage.scanning.batch_scan import DamagedBatchError


def dump_log(file: ReadableFile, decode: Decoder, wanted: Wanted, base_offset: int = 0) -> Iterator[Fact]:
    """Yields `batch` facts, each followed by its `record`s if wanted; `problem`s where they occur; `log_end` last."""
    batches = records = 0
    first_offset = last_offset = None
    due_offset = base_offset
    try:
        for position, header in _wanted_batches(file, wanted):
            batch = batch_scan.read_batch(file, position, header)
            yield from _batch(batch, header, position, decode, wanted.records)
            batches += 1
            records += header.record_count
            first_offset = header.base_offset if first_offset is None else first_offset
            last_offset = header.last_offset
            # The checksum does not cover the offset.
            if header.base_offset < due_offset:
                yield problem(position, f"offset {header.base_offset} where {due_offset} or a later one is expected")
            elif header.last_offset - base_offset > MAX_RELATIVE_OFFSET:
                yield problem(position, f"offset {header.last_offset} is too high for a segment from {base_offset} on")
            else:
                due_offset = header.next_offset
    except DamagedBatchError as damage:
        unread = file.size() - damage.position
        yield problem(damage.position, f"{damage.reason}; {unread} bytes from here on are not read")
    yield Fact(
        "log_end", {"batches": batches, "records": records, "first_offset": first_offset, "last_offset": last_offset}
    )


def _wanted_batches(file: ReadableFile, wanted: Wanted) -> Iterator[tuple[int, BatchHeader]]:
    first: int | None = None
    for position, header in batch_scan.headers(file, 0, file.size()):
        if header.last_offset < wanted.from_offset:
            continue
        first = position if first is None else first
        if wanted.max_bytes is not None and position - first >= wanted.max_bytes:
            return
        yield position, header


def dump_metadata_snapshot(file: ReadableFile, decode: Decoder, wanted: Wanted) -> Iterator[Fact]:
    """Like `dump_log`; a snapshot without a footer is incomplete."""
    control: object = None
    whole = wanted.max_bytes is None
    for fact in dump_log(file, decode, wanted):
        if fact.kind == "batch":
            control = fact.fields["control"]
        elif fact.kind == PROBLEM:
            whole = False
        elif fact.kind == "log_end" and whole and control != [ControlRecordType.SNAPSHOT_FOOTER.name]:
            yield problem(file.size(), "the snapshot ends without a footer")
        yield fact


def _batch(batch: bytes, header: BatchHeader, position: int, decode: Decoder, with_records: bool) -> Iterator[Fact]:
    fields = _header_fields(header, position)
    if not header.is_control and not with_records:
        yield Fact("batch", fields)
        return
    try:
        records = decode_batch(batch, header)
    except ApiError as error:
        yield Fact("batch", fields)
        yield problem(position, error.message)
        return
    decoded = [decode_control(record) if header.is_control else decode(record) for record in records]
    if header.is_control:
        fields["control"] = [each.get("record", "UNKNOWN") for each in decoded]
    yield Fact("batch", fields)
    if with_records:
        for record, content in zip(records, decoded, strict=True):
            yield Fact("record", _record_fields(record, content))


def _header_fields(header: BatchHeader, position: int) -> dict[str, object]:
    has_producer = header.producer_id != NO_PRODUCER_ID
    codec = header.attributes & 0x07
    try:
        compression = header.compression.name.lower()
    except ApiError:
        compression = f"unknown codec {codec}"
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "position": position,
        "size": header.size,
        "record_count": header.record_count,
        "compression": compression,
        "leader_epoch": header.leader_epoch,
        "crc": header.crc,
        "timestamp_type": "LogAppendTime" if header.timestamp_type == LOG_APPEND_TIME else "CreateTime",
        "base_timestamp": None if header.has_delete_horizon else header.base_timestamp,
        "delete_horizon": header.base_timestamp if header.has_delete_horizon else None,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id if has_producer else None,
        "producer_epoch": header.producer_epoch if has_producer else None,
        "base_sequence": header.base_sequence if header.base_sequence >= 0 else None,
        "last_sequence": header.last_sequence if header.base_sequence >= 0 else None,
        "transactional": header.is_transactional,
        "control": [] if header.is_control else None,
    }


def _record_fields(record: Record, content: dict[str, object]) -> dict[str, object]:
    fields: dict[str, object] = {"offset": record.offset, "timestamp": record.timestamp, **content}
    if record.headers:
        fields["headers"] = [{"name": name, "value": value} for name, value in record.headers]
    return fields
