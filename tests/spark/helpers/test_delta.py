"""The Delta table of a stream: every batch once, however often it is repeated."""

from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from quire.spark.delta import DeltaSink


def batch(spark: SparkSession, *numbers: int) -> DataFrame:
    rows = [(number, f"2026-01-0{1 + number % 2}") for number in numbers]
    return spark.createDataFrame(rows, "number int, date string")


def content(table: Path) -> list[int]:
    return sorted(DeltaTable(table).to_pyarrow_table()["number"].to_pylist())


def test_a_repeated_batch_is_skipped_and_the_next_is_written(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink(str(tmp_path / "table"), partition_by=["date"])
    assert sink.write(batch(spark, 1, 2), "stream", 0)
    assert sink.write(batch(spark, 3), "stream", 1)
    assert not DeltaSink(sink.table).write(batch(spark, 3), "stream", 1)
    assert sink.write(batch(spark, 4), "stream", 2)
    assert sink.last_batch("stream") == 2
    assert content(tmp_path / "table") == [1, 2, 3, 4]
    assert sorted(path.name for path in (tmp_path / "table").glob("date=*")) == ["date=2026-01-01", "date=2026-01-02"]


def test_a_batch_older_than_the_table_is_not_skipped_silently(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink(str(tmp_path / "table"))
    sink.write(batch(spark, 1), "stream", 0)
    sink.write(batch(spark, 2), "stream", 1)
    with pytest.raises(ValueError, match=r"batch 0 for table .* comes after batch 1 of the same stream"):
        sink.write(batch(spark, 3), "stream", 0)
    assert content(tmp_path / "table") == [1, 2]


@pytest.mark.parametrize("before", [0, 1])
def test_of_two_writers_of_one_batch_the_second_fails(spark: SparkSession, tmp_path: Path, before: int) -> None:
    """One writer has outlived its driver, and still computes the rows when the other has written them."""
    sink = DeltaSink(str(tmp_path / "table"))
    for number in range(before):
        sink.write(batch(spark, number), "stream", number)

    class Late:
        def toArrow(self) -> pa.Table:  # noqa: N802
            assert DeltaSink(sink.table).write(batch(spark, 7), "stream", before)
            return batch(spark, 7).toArrow()

    with pytest.raises(Exception, match=r"Concurrent transaction failed|already exists"):
        sink.write(cast(DataFrame, Late()), "stream", before)
    assert content(tmp_path / "table") == [*range(before), 7]


def test_streams_of_one_table_do_not_know_of_each_other(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink(str(tmp_path / "table"))
    assert sink.write(batch(spark, 1), "one", 7)
    assert sink.write(batch(spark, 2), "other", 0)
    assert content(tmp_path / "table") == [1, 2]


def test_small_files_are_merged_and_the_rows_and_batches_stay(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink(str(tmp_path / "table"), compact_every=4)
    for number in range(4):
        sink.write(batch(spark, number), "stream", number)
    table = DeltaTable(tmp_path / "table")
    assert len(table.file_uris()) == 1
    assert content(tmp_path / "table") == [0, 1, 2, 3]
    assert not sink.write(batch(spark, 3), "stream", 3)


def test_a_column_that_is_new_is_added_to_the_table(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink(str(tmp_path / "table"))
    sink.write(batch(spark, 1), "stream", 0)
    sink.write(spark.createDataFrame([(2, "2026-01-01", "new")], "number int, date string, more string"), "stream", 1)
    assert sorted(DeltaTable(tmp_path / "table").to_pyarrow_table()["more"].to_pylist(), key=str) == [None, "new"]


def test_an_empty_first_batch_makes_the_table_and_later_ones_do_nothing(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink(str(tmp_path / "table"))
    assert sink.write(batch(spark), "stream", 0)
    assert not sink.write(batch(spark), "stream", 1)
    assert DeltaTable(tmp_path / "table").version() == 0
    assert content(tmp_path / "table") == []


def test_a_stream_killed_between_the_table_and_its_checkpoint_writes_the_batch_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The failure comes after the table has the rows, so Spark repeats the batch when the stream restarts."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"number": 1, "date": "2026-01-01"}\n{"number": 2, "date": "2026-01-02"}')
    sink = DeltaSink(str(tmp_path / "table"))

    def fail_after(rows: DataFrame, number: int) -> None:
        sink(rows, number)
        raise RuntimeError("killed")

    def run(write: object) -> None:
        rows = spark.readStream.schema("number int, date string").json(str(tmp_path / "in"))
        to = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))  # type: ignore[arg-type]
        to.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(Exception, match="killed"):
        run(fail_after)
    (tmp_path / "in" / "2.json").write_text('{"number": 3, "date": "2026-01-01"}')
    run(sink)
    assert content(tmp_path / "table") == [1, 2, 3]


def test_batches_that_do_not_come_from_a_stream_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="do not come from a stream"):
        DeltaSink(str(tmp_path / "table"))(batch(spark, 1), 0)


def test_bytes_that_are_no_text_do_not_get_into_a_column_of_text(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink(str(tmp_path / "table"))
    sink.write(batch(spark, 1), "stream", 0)
    wrong = batch(spark, 2).selectExpr("number", "cast(X'ff' as string) as date")
    with pytest.raises(
        ValueError, match=r"batch 1 for table .* cannot be written: column date has a value that is not"
    ):
        sink.write(wrong, "stream", 1)
    assert content(tmp_path / "table") == [1]
