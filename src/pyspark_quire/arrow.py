"""Arrow record batches over the buffers of `ArrowColumns`: only values that are equal in all rows are copied."""

from collections.abc import Callable
from struct import pack

import pyarrow as pa

from quire.client.offsets import TopicPartition
from quire.protocol.records.arrow_columns import ArrowColumns
from quire.protocol.records.arrow_native import fill_steps


def to_record_batch(columns: ArrowColumns, topic_partition: TopicPartition, schema: pa.Schema) -> pa.RecordBatch:
    """The columns that `schema` names, in its order and with its types."""
    arrays = [_BY_NAME[field.name](columns, topic_partition, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _binary(kind: pa.DataType, count: int, ends: memoryview, data: memoryview, bits: memoryview | None) -> pa.Array:
    validity = None if bits is None else pa.py_buffer(bits)
    return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(ends), pa.py_buffer(data)])


def _numbers(kind: pa.DataType, numbers: bytes | memoryview, size_bytes: int) -> pa.Array:
    return pa.Array.from_buffers(kind, memoryview(numbers).nbytes // size_bytes, [None, pa.py_buffer(numbers)])


def _keys(columns: ArrowColumns, _: TopicPartition, kind: pa.DataType) -> pa.Array:
    return _binary(kind, columns.row, columns.key_ends, columns.key_data, columns.key_bits)


def _values(columns: ArrowColumns, _: TopicPartition, kind: pa.DataType) -> pa.Array:
    return _binary(kind, columns.row, columns.value_ends, columns.value_data, columns.value_bits)


def _topics(columns: ArrowColumns, topic_partition: TopicPartition, kind: pa.DataType) -> pa.Array:
    name = topic_partition.topic.encode()
    ends = memoryview(bytearray(4 * columns.row + 4)).cast("i")
    fill_steps(ends, len(name))
    return _binary(kind, columns.row, ends, memoryview(name * columns.row), None)


def _partitions(columns: ArrowColumns, topic_partition: TopicPartition, kind: pa.DataType) -> pa.Array:
    return _numbers(kind, pack("=i", topic_partition.partition) * columns.row, 4)


def _offsets(columns: ArrowColumns, _: TopicPartition, kind: pa.DataType) -> pa.Array:
    return _numbers(kind, columns.offsets, 8)


def _timestamps(columns: ArrowColumns, _: TopicPartition, kind: pa.DataType) -> pa.Array:
    return _numbers(kind, columns.timestamps_us, 8)


def _timestamp_types(columns: ArrowColumns, _: TopicPartition, kind: pa.DataType) -> pa.Array:
    return _numbers(kind, b"".join(pack("=i", number) * rows for rows, number in columns.timestamp_types), 4)


def _headers(columns: ArrowColumns, _: TopicPartition, kind: pa.DataType) -> pa.Array:
    count = columns.sizes.headers
    name_type, content_type = kind.value_type.field(0).type, kind.value_type.field(1).type
    names = _text(_binary(pa.binary(), count, columns.name_ends, columns.name_data, None), name_type)
    contents = _binary(content_type, count, columns.content_ends, columns.content_data, columns.content_bits)
    pairs = pa.StructArray.from_arrays([names, contents], fields=list(kind.value_type))
    buffers = [pa.py_buffer(columns.header_bits), pa.py_buffer(columns.header_ends)]
    return pa.Array.from_buffers(kind, columns.row, buffers, children=[pairs])


def _text(names: pa.Array, kind: pa.DataType) -> pa.Array:
    """Header names are text by convention only: in one that is not UTF-8, invalid bytes become question marks."""
    text = names.view(kind)
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], kind)
    return text


_BY_NAME: dict[str, Callable[[ArrowColumns, TopicPartition, pa.DataType], pa.Array]] = {
    "key": _keys,
    "value": _values,
    "topic": _topics,
    "partition": _partitions,
    "offset": _offsets,
    "timestamp": _timestamps,
    "timestampType": _timestamp_types,
    "headers": _headers,
}
