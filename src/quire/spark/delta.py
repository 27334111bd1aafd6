"""A Delta table that appends every batch of a stream once, and merges its small files from time to time.

A table remembers, in the same commit as the rows, the number of the last batch of each stream it has taken (Delta's
application transactions). A batch that is repeated after a crash is skipped if the table has its number, because rows
and number are committed together. Spark repeats only the last batch, so an earlier number comes from a checkpoint that
does not belong to the table, and is refused.
Two writers of the same stream cannot both commit a batch; the second fails. A stream is known by the id in its
checkpoint: a query with a new checkpoint is another stream, and its rows are appended.

    query = rows.writeStream.foreachBatch(DeltaSink("lake/orders", partition_by=["date"])).start()
"""

import logging
from collections.abc import Sequence

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import DataFrame

log = logging.getLogger("quire.spark")

COMPACT_EVERY = 20
QUERY_ID = "sql.streaming.queryId"


class DeltaSink:
    """For `foreachBatch`. The rows of a batch pass through the driver, so limit the size of batches."""

    def __init__(self, table: str, *, partition_by: Sequence[str] = (), compact_every: int = COMPACT_EVERY) -> None:
        self.table = table
        self.partition_by = list(partition_by)
        self.compact_every = compact_every

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        stream = batch.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        if stream is None:
            raise RuntimeError(
                f"the batches for {self.table} do not come from a stream; use write(batch, stream, number)"
            )
        self.write(batch, stream, batch_id)

    def write(self, batch: DataFrame, stream: str, batch_id: int) -> bool:
        """Appends the batch unless the table has it; returns whether it did."""
        # Everything is decided on this version of the table: a concurrent writer makes the commit fail.
        table = self._open()
        taken = None if table is None else table.transaction_version(stream)
        if taken is not None and batch_id < taken:
            raise ValueError(
                f"batch {batch_id} for table {self.table} comes after batch {taken} of the same stream, {stream}: its "
                "checkpoint is older than the table, or a copy of another checkpoint, so it is unknown whether the "
                "table has these rows; start with a new checkpoint, and a new table if rows must not be there twice"
            )
        if batch_id == taken:
            log.info("table %s has batch %d of %s already", self.table, batch_id, stream)
            return False
        rows = batch.toArrow()
        _check_text(rows, f"batch {batch_id} for table {self.table}")
        if not rows.num_rows and taken is not None:
            return False  # an existing table need not record an empty batch
        commit = CommitProperties(app_transactions=[Transaction(stream, batch_id)])
        columns = self.partition_by or None
        if table is None:
            write_deltalake(self.table, rows, mode="error", partition_by=columns, commit_properties=commit)
        else:
            write_deltalake(
                table, rows, mode="append", partition_by=columns, schema_mode="merge", commit_properties=commit
            )
        if self.compact_every and batch_id % self.compact_every == self.compact_every - 1:
            self.compact()
        return True

    def last_batch(self, stream: str) -> int | None:
        """The number of the stream's last batch in the table."""
        table = self._open()
        return None if table is None else table.transaction_version(stream)

    def _open(self) -> DeltaTable | None:
        return DeltaTable(self.table) if DeltaTable.is_deltatable(self.table) else None

    def compact(self) -> None:
        """Merges small files into larger ones; the rows stay the same, and the old files until they are vacuumed."""
        DeltaTable(self.table).optimize.compact()


def _check_text(rows: pa.Table, what: str) -> None:
    """Spark turns any bytes into text, and a table would accept it; its rows could then no longer be read."""
    for name in rows.column_names:
        try:
            rows[name].validate(full=True)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"{what} cannot be written: column {name} has a value that is not what its type says ({error}); "
                "keep bytes that may not be text as binary, or use make_valid_utf8"
            ) from None
