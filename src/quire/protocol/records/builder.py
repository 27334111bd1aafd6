"""New batches: from records (`build_batch`), from their bytes (`seal_batch`), or record by record (`BatchBuilder`)."""

from __future__ import annotations

from collections.abc import Sequence

from quire.protocol.records.batch import (
    CONTROL_BIT,
    CREATE_TIME,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_BIT,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    write_header,
)
from quire.protocol.records.compression import Compression, compress
from quire.protocol.records.encode_native import append_record, append_records
from quire.protocol.records.record import NO_TIMESTAMP, Header, Record
from quire.seams.disk import Buffer

MAX_TIMESTAMP = (1 << 63) - 2
"""A timestamp is stored as the difference from the first record's, which may be -1; it must fit into 64 bits too."""


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    timestamp_type: int = CREATE_TIME,
) -> bytearray:
    """A sealed batch of these records, with offsets from `base_offset` on; the records' own offsets are ignored."""
    assert records, "a batch has at least one record"
    base_timestamp = records[0].timestamp
    out = bytearray(HEADER_BYTES)
    append_records(out, records, base_timestamp)
    return _seal(
        out,
        len(records),
        base_timestamp,
        max([record.timestamp for record in records]),
        base_offset=base_offset,
        compression=compression,
        level=level,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        control=control,
        timestamp_type=timestamp_type,
    )


def seal_batch(
    plain: bytearray,
    count: int,
    timestamp: int,
    *,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
) -> bytearray:
    """A batch of records that are encoded already, after HEADER_BYTES of room, all with timestamp delta 0.

    Without compression it is sealed in place; with compression, `plain` does not change.
    """
    assert count > 0, "a batch has at least one record"
    out = plain
    if compression is not Compression.NONE:
        out = bytearray(HEADER_BYTES)
        with memoryview(plain) as view:
            out += compress(compression, view[HEADER_BYTES:], level)
    attributes = int(compression) | (TRANSACTIONAL_BIT if transactional else 0)
    write_header(
        out,
        0,
        len(out),
        base_offset=0,
        leader_epoch=NO_LEADER_EPOCH,
        attributes=attributes,
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=count,
    )
    return out


def _seal(
    out: bytearray,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    *,
    base_offset: int,
    compression: Compression,
    level: int | None,
    leader_epoch: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool,
    control: bool,
    timestamp_type: int,
) -> bytearray:
    """Compresses the plain records after the room for the header in `out`, and writes the header."""
    if compression is not Compression.NONE:
        with memoryview(out) as view:
            compressed = compress(compression, view[HEADER_BYTES:], level)
        out[HEADER_BYTES:] = compressed
    attributes = int(compression)
    if timestamp_type == LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_BIT
    if transactional:
        attributes |= TRANSACTIONAL_BIT
    if control:
        attributes |= CONTROL_BIT
    write_header(
        out,
        0,
        len(out),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=count,
    )
    return out


class BatchBuilder:
    """A batch that a producer fills until it is full or due, and seals when it knows its producer id and sequence.

    `max_bytes` limits the size on the wire. With compression that is an estimate: `ratio` is the expected ratio of
    compressed to plain size, which the producer knows from earlier batches.
    """

    __slots__ = ("_base_timestamp", "_max_bytes", "_max_timestamp", "_out", "_ratio", "compression", "count", "level")

    def __init__(
        self,
        max_bytes: int,
        compression: Compression = Compression.NONE,
        level: int | None = None,
        ratio: float = 1.0,
    ) -> None:
        self.compression = compression
        self.level = level
        self.count = 0
        self._max_bytes = max_bytes
        self._ratio = ratio if compression is not Compression.NONE else 1.0
        self._base_timestamp = NO_TIMESTAMP
        self._max_timestamp = NO_TIMESTAMP
        self._out = bytearray(HEADER_BYTES)

    @property
    def plain_size(self) -> int:
        """Bytes of the batch before compression."""
        return len(self._out)

    @property
    def estimated_size(self) -> int:
        """The expected size on the wire; exact without compression."""
        return HEADER_BYTES + int((len(self._out) - HEADER_BYTES) * self._ratio)

    def append(
        self,
        key: Buffer | None,
        value: Buffer | None,
        headers: Sequence[Header] = (),
        timestamp: int = NO_TIMESTAMP,
    ) -> bool:
        """Adds a record; False, with nothing changed, if it does not fit. The first record always fits."""
        if not NO_TIMESTAMP <= timestamp <= MAX_TIMESTAMP:
            raise ValueError(f"{timestamp} is not a timestamp; use milliseconds since 1970, or -1 for none")
        if self.count == 0:
            append_record(self._out, 0, 0, key, value, headers)
            self._base_timestamp = self._max_timestamp = timestamp
            self.count = 1
            return True
        size_before = len(self._out)
        append_record(self._out, self.count, timestamp - self._base_timestamp, key, value, headers)
        if self.estimated_size > self._max_bytes:
            del self._out[size_before:]
            return False
        if timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        self.count += 1
        return True

    def build(
        self,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
    ) -> bytearray:
        """Seals the batch and returns it; the builder cannot be used after that."""
        assert self.count > 0, "a batch has at least one record"
        out, self._out = self._out, bytearray()
        return _seal(
            out,
            self.count,
            self._base_timestamp,
            self._max_timestamp,
            base_offset=0,
            compression=self.compression,
            level=self.level,
            leader_epoch=NO_LEADER_EPOCH,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=transactional,
            control=False,
            timestamp_type=CREATE_TIME,
        )
