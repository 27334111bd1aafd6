"""Arrow record batches from Spark become rows for topics; rows that cannot be written are reported in one sentence."""

import pyarrow as pa
import pytest

from pyspark_quire.errors import QuireError
from pyspark_quire.rows import Rows, rows_by_topic
from quire.client.arrow_rows_native import Lane, choose_partitions, encode_rows
from quire.protocol.records import Record, decode_batch, read_header, seal_batch

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def written(rows: Rows, partitions: int = 1) -> list[Record]:
    """The records of the rows, partition after partition."""
    chosen = memoryview(bytearray(4 * rows.count)).cast("i")
    assert choose_partitions(chosen, rows.keys, rows.wanted, rows.wanted_validity, partitions) == -1
    lanes = [Lane() for _ in range(partitions)]
    row = encode_rows(lanes, chosen, rows.keys, rows.values, rows.headers, 0, rows.count, 0, 1 << 20)
    assert row == rows.count
    found: list[Record] = []
    for lane in lanes:
        if lane.count:
            count = lane.count
            batch = seal_batch(lane.take(), count, 5)
            found += decode_batch(batch, read_header(batch))
    return found


def pairs(rows: Rows) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in written(rows)]


def test_texts_and_bytes_nulls_and_empty_ones_are_kept_apart() -> None:
    batch = pa.record_batch(
        {
            "key": pa.array(["a", None, "", "ü"], pa.string()),
            "value": pa.array([b"1", b"", None, bytes(9)], pa.binary()),
        }
    )
    (rows,) = rows_by_topic(batch, "t")
    assert rows.topic == "t"
    assert pairs(rows) == [(b"a", b"1"), (None, b""), (b"", None), ("ü".encode(), bytes(9))]


def test_a_slice_of_a_batch_has_its_own_rows_only() -> None:
    batch = pa.record_batch(
        {
            "key": pa.array(["a", None, "c", "d"]),
            "value": pa.array(["1", "2", None, "4"]),
            "headers": pa.array([[], [("x", b"1")], None, [("y", b"2"), ("z", None)]], HEADERS),
            "partition": pa.array([0, 1, 1, None], pa.int32()),
        }
    ).slice(1, 3)
    (rows,) = rows_by_topic(batch, "t")
    records = written(rows, 2)
    assert [(record.value, record.headers) for record in records] == [
        (b"2", [("x", b"1")]),
        (None, []),
        (b"4", [("y", b"2"), ("z", None)]),
    ], "all in partition 1: the first two want it, and the key of the last hashes to it"


def test_large_and_untyped_columns_are_taken() -> None:
    batch = pa.record_batch(
        {"key": pa.nulls(2), "value": pa.array(["1", "2"], pa.large_string()), "headers": pa.nulls(2)}
    )
    (rows,) = rows_by_topic(batch, "t")
    assert pairs(rows) == [(None, b"1"), (None, b"2")]


def test_rows_go_to_the_topics_in_their_column_in_order() -> None:
    batch = pa.record_batch({"topic": ["a", "b", "a", "c"], "value": ["1", "2", "3", "4"]})
    found = {rows.topic: [value for _, value in pairs(rows)] for rows in rows_by_topic(batch, None)}
    assert found == {"a": [b"1", b"3"], "b": [b"2"], "c": [b"4"]}


def test_the_option_wins_over_the_column() -> None:
    batch = pa.record_batch({"topic": ["a", None], "value": ["1", "2"]})
    assert [(rows.topic, rows.count) for rows in rows_by_topic(batch, "z")] == [("z", 2)]


def test_a_null_topic_is_refused_with_the_row_it_belongs_to() -> None:
    batch = pa.record_batch({"topic": ["a", None], "value": ["1", "the second"]})
    with pytest.raises(QuireError, match=r"topic of a row is null \(its value begins with 'the second'\)"):
        list(rows_by_topic(batch, None))


@pytest.mark.parametrize("headers", [[("a", b""), None], [(None, b"x")]])
def test_a_header_without_a_key_is_refused(headers: list[tuple[str, bytes] | None]) -> None:
    batch = pa.record_batch({"value": ["1"], "headers": pa.array([headers], HEADERS)})
    with pytest.raises(QuireError, match="topic t has a header that is null or has no key"):
        list(rows_by_topic(batch, "t"))


def test_the_same_rows_have_the_same_digest_however_spark_cuts_and_orders_them() -> None:
    keys, values, topics = ["a", "b", None, "d"], ["1", None, "3", "4"], ["x", "y", "x", "y"]
    batch = pa.record_batch({"key": keys, "value": values, "topic": topics})
    turned = pa.record_batch({"key": keys[::-1], "value": values[::-1], "topic": topics[::-1]})

    def digest(batches: list[pa.RecordBatch], topic: str | None = None) -> int:
        return sum(rows.digest() for batch in batches for rows in rows_by_topic(batch, topic)) % 2**64

    assert digest([batch]) == digest([turned]) == digest([turned.slice(0, 1), turned.slice(1)])
    assert digest([batch]) != digest([batch.slice(0, 3)])
    assert digest([batch]) != digest([batch], "x"), "where a row goes counts"


def test_texts_and_bytes_of_the_same_content_have_the_same_digest() -> None:
    (text,) = rows_by_topic(pa.record_batch({"value": ["1"]}), "t")
    (binary,) = rows_by_topic(pa.record_batch({"value": [b"1"]}), "t")
    assert text.digest() == binary.digest()
