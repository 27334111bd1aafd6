"""A Spark job to be killed: copies a topic exactly once, in small batches, until it has copied what is there.

python -m tests.spark.sink.copy_job SERVERS SOURCE SINK CHECKPOINT BATCH_ROWS
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.conftest import SETTINGS
from tests.spark.sink.copying import copy, read_numbers


def main(servers: str, source: str, sink: str, checkpoint: str, batch_rows: str) -> None:
    builder = SparkSession.builder.master("local[2]").appName("copy")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print("ready", flush=True)
    frame = read_numbers(spark, servers, source, maxOffsetsPerTrigger=batch_rows, minPartitions=2)
    copy(frame, servers, sink, Path(checkpoint))
    print("copied", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
