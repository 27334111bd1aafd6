"""The marker that ends a transaction: a control batch of its producer with one record, COMMIT or ABORT."""

from struct import Struct
from typing import NamedTuple

from quire.protocol.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    NO_LEADER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    write_header,
)
from quire.protocol.records.control import ControlRecordType, control_type
from quire.protocol.records.invalid import InvalidRecords
from quire.protocol.records.reader import decode_batch
from quire.seams import Buffer

_VALUE = Struct(">hi")

_RECORD = Struct(">5shhBhiB")
"""The one record of a marker as Quire and Apache Kafka write it: the bytes before the key; the key (version and type);
the length of the value; the value (version and coordinator epoch); and the number of headers, 0."""
_BEFORE_KEY = b"\x20\x00\x00\x00\x08"
_VALUE_LENGTH = 12  # Zigzag of the value's six bytes.
_SIZE_BYTES = HEADER_BYTES + _RECORD.size
_ABORT = int(ControlRecordType.ABORT)
_COMMIT = int(ControlRecordType.COMMIT)


class EndMarker(NamedTuple):
    aborts: bool
    coordinator_epoch: int


def is_end_marker(header: BatchHeader) -> bool:
    return header.producer_id >= 0 and header.is_control


def read_end_marker(batch: Buffer, header: BatchHeader) -> EndMarker | None:
    """The marker in the batch at `header.position`; None for a control batch of another type."""
    if header.size == _SIZE_BYTES and header.end <= len(batch) and not header.attributes & CODEC_MASK:
        before, _, kind, length, _, coordinator_epoch, _ = _RECORD.unpack_from(batch, header.position + HEADER_BYTES)
        if before == _BEFORE_KEY and length == _VALUE_LENGTH and kind in (_ABORT, _COMMIT):
            return EndMarker(kind == _ABORT, coordinator_epoch)
    return _read_another(batch, header)


def _read_another(batch: Buffer, header: BatchHeader) -> EndMarker | None:
    """Reads a marker that another implementation encoded differently."""
    try:
        (record,) = decode_batch(batch, header)
        kind = control_type(record)
    except (InvalidRecords, ValueError):
        return None
    if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    value = record.value or b""
    coordinator_epoch = _VALUE.unpack_from(value)[1] if len(value) >= _VALUE.size else -1
    return EndMarker(kind is ControlRecordType.ABORT, coordinator_epoch)


def build_end_marker(
    producer_id: int, producer_epoch: int, *, committed: bool, coordinator_epoch: int, timestamp: int
) -> bytearray:
    """The batch that ends a producer's transaction in a partition."""
    marker = bytearray(_SIZE_BYTES)
    kind = _COMMIT if committed else _ABORT
    _RECORD.pack_into(marker, HEADER_BYTES, _BEFORE_KEY, 0, kind, _VALUE_LENGTH, 0, coordinator_epoch, 0)
    write_header(
        marker,
        0,
        _SIZE_BYTES,
        base_offset=0,
        leader_epoch=NO_LEADER_EPOCH,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        record_count=1,
    )
    return marker
