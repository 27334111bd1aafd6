"""Control batches, which only brokers write between the records of a log.

The key of a control record is two 16-bit numbers, a version and a type; its value is one of the structures in
`quire.protocol.messages.control_records`, which the caller encodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from struct import error as struct_error

from quire.protocol.records.batch import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from quire.protocol.records.builder import build_batch
from quire.protocol.records.invalid import corrupt
from quire.protocol.records.record import Record

_KEY = Struct(">hh")
_KEY_VERSION = 0


class ControlRecordType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def build_control_batch(
    controls: Sequence[tuple[ControlRecordType, bytes]],
    timestamp: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
) -> bytearray:
    """A sealed control batch of (type, encoded value). With a producer id it ends that producer's transaction."""
    return build_batch(
        [Record(0, timestamp, _KEY.pack(_KEY_VERSION, kind), value) for kind, value in controls],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=producer_id != NO_PRODUCER_ID,
        control=True,
    )


def control_type(record: Record) -> ControlRecordType | None:
    """The type of a control record; None for an unknown type, which callers skip."""
    try:
        _, kind = _KEY.unpack_from(record.key or b"")
    except struct_error:
        raise corrupt(f"The control record at offset {record.offset} has no readable key.") from None
    return _TYPES.get(kind)


_TYPES = {kind.value: kind for kind in ControlRecordType}
