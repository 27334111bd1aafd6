"""The marker that ends a transaction: a control batch of its producer with one record, COMMIT or ABORT."""

from struct import Struct
from typing import NamedTuple

from quire.protocol.records.batch import BatchHeader
from quire.protocol.records.control import ControlRecordType, build_control_batch, control_type
from quire.protocol.records.invalid import InvalidRecords
from quire.protocol.records.reader import decode_batch
from quire.seams import Buffer

_VALUE = Struct(">hi")
_VALUE_VERSION = 0


class EndMarker(NamedTuple):
    aborts: bool
    coordinator_epoch: int


def is_end_marker(header: BatchHeader) -> bool:
    return header.producer_id >= 0 and header.is_control


def read_end_marker(batch: Buffer, header: BatchHeader) -> EndMarker | None:
    """What the batch at `header.position` says; None for a control batch of a kind that ends no transaction."""
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
    kind = ControlRecordType.COMMIT if committed else ControlRecordType.ABORT
    return build_control_batch(
        [(kind, _VALUE.pack(_VALUE_VERSION, coordinator_epoch))],
        timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
