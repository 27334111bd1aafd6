"""A Spark job to be killed: copies a topic to another and to a Delta table, exactly once, in small batches.

It ends when it has copied everything. Checkpoints and table are below FOLDER.

python -m tests.spark.sink.copy_job SERVERS SOURCE SINK FOLDER BATCH_ROWS
"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from quire.spark.delta import DeltaSink
from tests.spark.conftest import SETTINGS
from tests.spark.sink.copying import lake_in, read_numbers, start_copy


def main(servers: str, source: str, sink: str, folder: str, batch_rows: str) -> None:
    builder = SparkSession.builder.master("local[2]").appName("copy")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print("ready", flush=True)

    def frame() -> DataFrame:
        """Each query needs its own frame: Spark may fail to serialize the plan of a frame that two queries start from
        at the same time ("Illegal size of collection")."""
        return read_numbers(spark, servers, source, maxOffsetsPerTrigger=batch_rows, minPartitions=2)

    to_topic = start_copy(frame(), servers, sink, Path(folder) / "checkpoint")
    to_lake = (
        frame()
        .writeStream.foreachBatch(DeltaSink(lake_in(Path(folder)), compact_every=3))
        .option("checkpointLocation", f"{folder}/lake-checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    to_topic.awaitTermination()
    to_lake.awaitTermination()
    print("copied", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
