"""Converts Spark's record batches into columns for the compiled loops, one set for each topic.

A batch with a single topic, which is the usual case, is not copied.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_quire.errors import QuireError
from quire.client.arrow_rows_native import Column, Headers, digest_rows

_EMPTY = memoryview(b"")
_NO_OFFSETS = memoryview(bytes(4)).cast("i")
_SEED_FACTOR = 0x100000001B3
_ALL = (1 << 64) - 1


@dataclass(slots=True, frozen=True)
class Rows:
    """Rows for one topic, in the order they came."""

    topic: str
    count: int
    keys: Column | None
    values: Column
    headers: Headers | None
    wanted: memoryview | None
    """The partition of each row, if its bit in `wanted_validity` is set (None: all are)."""
    wanted_validity: memoryview | None

    def digest(self) -> int:
        """An order-independent 64-bit hash of the rows; that of several `Rows` is the sum of theirs."""
        seed = 0xCBF29CE484222325
        for byte in self.topic.encode():
            seed = ((seed ^ byte) * _SEED_FACTOR) & _ALL
        return digest_rows(seed, self.keys, self.values, self.headers, self.wanted, self.wanted_validity, self.count)


def rows_by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[Rows]:
    """The rows of a batch: all for `topic` if it is given, otherwise each for the topic in its column."""
    if topic is not None:
        yield rows_of(batch, topic)
        return
    topics = batch.column("topic")
    if topics.null_count:
        row = pc.index(topics.is_null(), True).as_py()
        raise QuireError(
            f"the topic of a row is null ({_excerpt(batch, row)}); every row needs one, or give option topic"
        )
    encoded = topics.dictionary_encode()
    for index, name in enumerate(encoded.dictionary.to_pylist()):
        part = batch if len(encoded.dictionary) == 1 else batch.filter(pc.equal(encoded.indices, index))
        yield rows_of(part, name)


def rows_of(batch: pa.RecordBatch, topic: str) -> Rows:
    names = batch.schema.names
    keys = _column(batch.column("key")) if "key" in names else None
    headers = _headers(batch.column("headers"), topic) if "headers" in names else None
    wanted, wanted_validity = _numbers(batch.column("partition")) if "partition" in names else (None, None)
    return Rows(topic, batch.num_rows, keys, _column(batch.column("value")), headers, wanted, wanted_validity)


def _excerpt(batch: pa.RecordBatch, row: int) -> str:
    value = batch.column("value")[row].as_py()
    return "its value is null" if value is None else f"its value begins with {value[:40]!r}"


def _column(array: pa.Array) -> Column:
    if not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        array = array.cast(pa.binary())
    validity, offsets, data = array.buffers()
    return Column(
        _NO_OFFSETS if offsets is None else _view(offsets).cast("i"),
        _EMPTY if data is None else _view(data),
        _validity(array, validity),
        array.offset,
    )


def _headers(array: pa.Array, topic: str) -> Headers | None:
    if pa.types.is_null(array.type):
        return None
    entries = array.values
    names, values = entries.field(0), entries.field(1)
    if entries.null_count or names.null_count:
        raise QuireError(f"a row for topic {topic} has a header that is null or has no key; every header needs a key")
    validity, offsets = array.buffers()[:2]
    return Headers(
        _NO_OFFSETS if offsets is None else _view(offsets).cast("i"),
        _validity(array, validity),
        array.offset,
        _column(names),
        _column(values),
    )


def _numbers(array: pa.Array) -> tuple[memoryview | None, memoryview | None]:
    if array.null_count == len(array):
        return None, None
    if array.offset:
        array = pa.array(array.to_pylist(), pa.int32())
    validity, numbers = array.buffers()
    return _view(numbers).cast("i")[: len(array)], _validity(array, validity)


def _validity(array: pa.Array, bits: pa.Buffer | None) -> memoryview | None:
    return None if bits is None or not array.null_count else _view(bits)


def _view(buffer: pa.Buffer) -> memoryview:
    return memoryview(buffer).cast("B")
