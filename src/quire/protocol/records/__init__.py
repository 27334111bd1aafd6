"""Record batches, format version 2: reading, checking, building and rewriting them. No I/O, no state.

`batch` has the header, `record` a record; `validator` checks produced batches; `reader` and `builder` decode and
encode; `compression` has the codecs, with limits; `control` and `rewrite` are for brokers. The loops over single
records are in `records_native`, which is compiled if there is a C compiler at installation.
"""

from quire.protocol.records import records_native as _native
from quire.protocol.records.batch import (
    CREATE_TIME,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    check_crc,
    patch,
    read_header,
    set_max_timestamp,
    walk_batches,
)
from quire.protocol.records.builder import BatchBuilder, build_batch, seal_batch
from quire.protocol.records.compression import MAX_DECOMPRESSED_BYTES, Compression, compress, decompress
from quire.protocol.records.control import ControlRecordType, build_control_batch, control_type
from quire.protocol.records.invalid import InvalidRecords
from quire.protocol.records.reader import (
    decode_batch,
    find_timestamp,
    iterate_records,
    read_records,
    records_section,
)
from quire.protocol.records.record import NO_TIMESTAMP, Header, Record
from quire.protocol.records.records_native import check_plain
from quire.protocol.records.rewrite import rewrite
from quire.protocol.records.validator import validate

__all__ = [
    "CREATE_TIME",
    "HEADER_BYTES",
    "LOG_APPEND_TIME",
    "MAX_DECOMPRESSED_BYTES",
    "NO_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "BatchBuilder",
    "BatchHeader",
    "Compression",
    "ControlRecordType",
    "Header",
    "InvalidRecords",
    "Record",
    "build_batch",
    "build_control_batch",
    "check_crc",
    "check_plain",
    "compress",
    "control_type",
    "decode_batch",
    "decompress",
    "find_timestamp",
    "iterate_records",
    "native_compiled",
    "patch",
    "read_header",
    "read_records",
    "records_section",
    "rewrite",
    "seal_batch",
    "set_max_timestamp",
    "validate",
    "walk_batches",
]


def native_compiled() -> bool:
    """Whether the loops over records are compiled; if not, a node logs at its start that it will be slow."""
    return _native.COMPILED
