"""A data source that reports the state of the process that its tasks run in."""

import gc
import socket
from collections.abc import Iterator

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_quire.spark_process import SentToTasks, find_connection


class ProbeSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "quire-probe"

    def schema(self) -> str:
        return "sends_at_once boolean, set_aside long"

    def reader(self, schema: StructType) -> DataSourceReader:
        return ProbeReader(schema)


class ProbeReader(SentToTasks, DataSourceReader):
    def __init__(self, schema: StructType) -> None:
        self._schema = schema

    def read(self, partition: InputPartition) -> Iterator[tuple[bool, int]]:
        connection = find_connection()
        assert connection is not None
        stream = socket.socket(fileno=connection)
        try:
            sends_at_once = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
        finally:
            stream.detach()
        return iter([(sends_at_once, gc.get_freeze_count())])
