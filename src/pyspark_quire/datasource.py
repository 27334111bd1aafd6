"""`format("quire")` as Spark sees it: a name, a schema, readers and writers.

For every call (the schema, the plan of a query) Spark creates an instance in a new Python process. It pickles readers
and writers from there to the tasks, and keeps one process for the offsets of a running stream. Each instance checks the
options, so a wrong option is reported at `load()`, before anything runs.
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
from pyspark_quire.one_sentence import one_sentence
from pyspark_quire.options import INCLUDE_HEADERS, SERVERS, Options, Use
from pyspark_quire.spark_process import speed_up_this_process


class QuireDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "quire"

    @one_sentence()
    def schema(self) -> StructType:
        options = Options(self.options, Use.READ)
        options.required(SERVERS)
        return read_schema(options[INCLUDE_HEADERS])

    @one_sentence()
    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_quire.batch_reader import BatchReader

        speed_up_this_process()
        return BatchReader(Options(self.options, Use.BATCH_READ), schema)

    @one_sentence()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from pyspark_quire.stream_reader import StreamReader

        speed_up_this_process()
        return StreamReader(Options(self.options, Use.STREAM_READ), schema)

    @one_sentence()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_quire.batch_writer import BatchWriter

        speed_up_this_process()
        return BatchWriter(Options(self.options, Use.BATCH_WRITE), schema, overwrite)

    @one_sentence()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from pyspark_quire.stream_writer import StreamWriter

        speed_up_this_process()
        return StreamWriter(Options(self.options, Use.STREAM_WRITE), schema)
