"""`format("quire")` as Spark sees it: a name, a schema, and who reads and writes.

Spark makes an instance in a Python process of its own for every question (the schema, the plan of a query), pickles
readers and writers from there to the tasks, and keeps one process for the offsets of a running stream. The options are
checked in each, so a slip is told at `load()`, before anything runs.
"""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pyspark_quire.columns import read_schema
from pyspark_quire.options import INCLUDE_HEADERS, SERVERS, Options, Use
from pyspark_quire.spark_process import settle_in


class QuireDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "quire"

    def schema(self) -> StructType:
        options = Options(self.options, Use.READ)
        options.required(SERVERS)
        return read_schema(options[INCLUDE_HEADERS])

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_quire.batch_reader import BatchReader

        settle_in()
        return BatchReader(Options(self.options, Use.BATCH_READ), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from pyspark_quire.stream_reader import StreamReader

        settle_in()
        return StreamReader(Options(self.options, Use.STREAM_READ), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_quire.batch_writer import BatchWriter

        settle_in()
        return BatchWriter(Options(self.options, Use.BATCH_WRITE), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from pyspark_quire.stream_writer import StreamWriter

        settle_in()
        return StreamWriter(Options(self.options, Use.STREAM_WRITE), schema)
