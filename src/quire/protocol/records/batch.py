"""The header of a record batch (magic 2), and the few things that change in it after a producer has sealed it.

    base offset 8 | length 4 | leader epoch 4 | magic 1 | crc 4 |
    attributes 2 | last offset delta 4 | base timestamp 8 | max timestamp 8 |
    producer id 8 | producer epoch 2 | base sequence 4 | record count 4 | records (compressed as one piece)

The length counts the bytes after it. The CRC-32C covers everything from the attributes on, so a log can set base
offset and leader epoch in place, and append the batch otherwise unchanged. Old message sets (magic 0 and 1) have the
magic byte at the same position; they are recognised and refused.
"""

from __future__ import annotations

from struct import Struct

from quire.protocol.errors import ErrorCode
from quire.protocol.records.checksum import crc32c
from quire.protocol.records.compression import Compression
from quire.protocol.records.invalid import InvalidRecords, corrupt
from quire.seams.disk import Buffer

HEADER_BYTES = 61
LENGTH_END = 12
MAGIC = 2

CODEC_MASK = 0x07
CODEC_POSITION = 22
"""The position of the byte with the codec in a batch."""
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

CREATE_TIME = 0
LOG_APPEND_TIME = 1

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

_HEADER = Struct(">qiibIhiqqqhii")
_PRODUCER = Struct(">h20xqh")
"""From the attributes on: these, the producer id and the producer epoch."""
_MAGIC_POSITION = 16
_CRC_POSITION = 17
_ATTRIBUTES_POSITION = 21
CHECKED_FROM = _ATTRIBUTES_POSITION
"""Where the checksum begins to count. Before that are offset, length, leader epoch, magic and the checksum itself."""
_MAX_TIMESTAMP_POSITION = 35

_INT16 = Struct(">h")
_UINT32 = Struct(">I")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_pack_int32 = _INT32.pack_into
_pack_int64 = _INT64.pack_into


class BatchHeader:
    """The fields of one batch's header, and where in its buffer the batch begins (`position`)."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset_delta",
        "leader_epoch",
        "length",
        "magic",
        "max_timestamp",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
    )

    def __init__(
        self,
        position: int,
        base_offset: int,
        length: int,
        leader_epoch: int,
        magic: int,
        crc: int,
        attributes: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        record_count: int,
    ) -> None:
        self.position = position
        self.base_offset = base_offset
        self.length = length
        self.leader_epoch = leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.record_count = record_count

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.length + LENGTH_END

    @property
    def end(self) -> int:
        """The position in the buffer after this batch."""
        return self.position + self.length + LENGTH_END

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """After 2**31 - 1, sequence numbers continue at 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self) -> Compression:
        return Compression.of(self.attributes & CODEC_MASK)

    @property
    def timestamp_type(self) -> int:
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether the base timestamp is the time from which compaction may drop the batch's tombstones (KIP-534)."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BatchHeader):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "BatchHeader(" + ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__) + ")"


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`. The records need not be in the buffer, and the CRC is not checked."""
    available = len(buffer) - position
    if available < HEADER_BYTES:
        if available > _MAGIC_POSITION:
            _check_magic(_int8(buffer[position + _MAGIC_POSITION]))
        raise corrupt(f"A record batch needs at least {HEADER_BYTES} bytes, {max(available, 0)} are there.")
    header = BatchHeader(position, *_HEADER.unpack_from(buffer, position))
    if header.magic != MAGIC:
        _check_magic(header.magic)
    if header.length < HEADER_BYTES - LENGTH_END:
        raise corrupt(f"A record batch has the impossible length {header.length}.")
    return header


def transactional_producer(buffer: Buffer) -> tuple[int, int] | None:
    """The producer id and epoch of the batch at the beginning of `buffer`, if it is part of a transaction."""
    if len(buffer) < HEADER_BYTES or buffer[_MAGIC_POSITION] != MAGIC:
        return None
    attributes, producer_id, producer_epoch = _PRODUCER.unpack_from(buffer, _ATTRIBUTES_POSITION)
    return (producer_id, producer_epoch) if attributes & TRANSACTIONAL_BIT else None


def _int8(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _check_magic(magic: int) -> None:
    if magic == MAGIC:
        return
    if magic in (0, 1):
        raise InvalidRecords(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"Records in the old message format (magic {magic}) are not supported; use a client that writes magic 2.",
        )
    raise corrupt(f"There is no record batch format with magic {magic}.")


def walk_batches(buffer: Buffer, position: int = 0) -> list[BatchHeader]:
    """The headers of all whole batches from `position` on.

    A partial batch at the end of the buffer, which fetch responses may have, is left out. To detect one, compare the
    last header's `end` with the length of the buffer.
    """
    headers: list[BatchHeader] = []
    total = len(buffer)
    while total - position >= HEADER_BYTES:
        header = read_header(buffer, position)
        position = header.end
        if position > total:
            break
        headers.append(header)
    return headers


def compute_crc(buffer: Buffer, header: BatchHeader) -> int:
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    start = header.position
    return crc32c(view[start + CHECKED_FROM : start + LENGTH_END + header.length])


def check_crc(buffer: Buffer, header: BatchHeader) -> None:
    """Raises an error if the checksum of a batch is wrong. The whole batch must be in the buffer."""
    computed = compute_crc(buffer, header)
    if computed != header.crc:
        raise corrupt(
            f"A record batch has the CRC {computed:#010x} but says {header.crc:#010x}: it changed on its way."
        )


def patch(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Sets the offset and leader epoch of the batch at `position`; the CRC does not cover these fields."""
    _pack_int64(buffer, position, base_offset)
    _pack_int32(buffer, position + LENGTH_END, leader_epoch)


def write_header(
    buffer: bytearray | memoryview,
    position: int,
    size: int,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> None:
    """Writes the 61 bytes before the records of a batch of `size` bytes, with the checksum."""
    _HEADER.pack_into(
        buffer,
        position,
        base_offset,
        size - LENGTH_END,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    with memoryview(buffer) as view:
        crc = crc32c(view[position + CHECKED_FROM : position + size])
    _UINT32.pack_into(buffer, position + _CRC_POSITION, crc)


def set_max_timestamp(buffer: bytearray | memoryview, header: BatchHeader, timestamp_type: int, max_ms: int) -> None:
    """Changes timestamp type, max timestamp and checksum of a batch in place, in the bytes and in `header`.

    With LogAppendTime the max timestamp is the timestamp of every record, so no record has to be changed.
    """
    attributes = header.attributes & ~LOG_APPEND_TIME_BIT
    if timestamp_type == LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_BIT
    _INT16.pack_into(buffer, header.position + _ATTRIBUTES_POSITION, attributes)
    _INT64.pack_into(buffer, header.position + _MAX_TIMESTAMP_POSITION, max_ms)
    header.attributes = attributes
    header.max_timestamp = max_ms
    header.crc = compute_crc(buffer, header)
    _UINT32.pack_into(buffer, header.position + _CRC_POSITION, header.crc)
