"""The archive keeps records completely, with any key and value."""

from datetime import date, datetime
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pipelines.shop.archive import archive
from pyspark_quire.columns import PLAIN
from quire.spark.delta import DeltaSink


def test_every_key_and_value_is_kept_unchanged_whether_it_is_text_or_not(spark: SparkSession, tmp_path: Path) -> None:
    kept = [(b"user-1", b"{}"), (None, None), (b"\xff\xfe", b"\x80"), (b"", b"")]
    rows = [(key, value, "t", 0, offset, datetime(2026, 1, 1), 0) for offset, (key, value) in enumerate(kept)]
    DeltaSink(str(tmp_path / "t"), partition_by=["date"]).write(archive(spark.createDataFrame(rows, PLAIN)), "s", 0)
    found = sorted(DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist(), key=lambda row: row["offset"])
    assert [(row["key"], row["value"]) for row in found] == kept
    assert [row["user_id"] for row in found] == ["user-1", None, "\ufffd\ufffd", ""]
    assert {row["date"] for row in found} == {date(2026, 1, 1)}
