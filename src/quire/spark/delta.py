"""A Delta table that takes every batch of a stream once, and merges its small files now and then.

A table remembers, in the same commit as the rows, the number of the last batch of each stream it has taken (Delta's
application transactions). A batch that comes again after a crash finds its number there and is left out, whatever
became of the attempt before: there is no moment at which its rows are in the table and its number is not. Two writers
of the same stream cannot both commit a batch; the second fails. A stream is known by the id in its checkpoint: one that
starts anew with another checkpoint is another stream, and its rows are added.

    query = rows.writeStream.foreachBatch(DeltaSink("lake/orders", partition_by=["date"])).start()
"""

import logging
from collections.abc import Sequence

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import DataFrame

log = logging.getLogger("quire.spark")

COMPACT_EVERY = 20
QUERY_ID = "sql.streaming.queryId"


class DeltaSink:
    """For `foreachBatch`. The rows of a batch pass through the driver, so limit how many a batch may have."""

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
        """Appends the batch unless the table has it; says whether it did."""
        taken = self.last_batch(stream)
        if taken is not None and batch_id <= taken:
            log.info("table %s has batch %d of %s already", self.table, batch_id, stream)
            return False
        rows = batch.toArrow()
        if not rows.num_rows and taken is not None:
            return False  # a table that exists need not know that nothing came
        write_deltalake(
            self.table,
            rows,
            mode="append",
            partition_by=self.partition_by or None,
            schema_mode="merge",
            commit_properties=CommitProperties(app_transactions=[Transaction(stream, batch_id)]),
        )
        if self.compact_every and batch_id % self.compact_every == self.compact_every - 1:
            self.compact()
        return True

    def last_batch(self, stream: str) -> int | None:
        """The number of the last batch of the stream that is in the table."""
        if not DeltaTable.is_deltatable(self.table):
            return None
        return DeltaTable(self.table).transaction_version(stream)

    def compact(self) -> None:
        """Merges small files into larger ones; the rows stay the same, and the old files until they are vacuumed."""
        DeltaTable(self.table).optimize.compact()
