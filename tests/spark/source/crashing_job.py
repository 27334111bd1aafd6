"""A streaming job in a process of its own: `python -m tests.spark.source.crashing_job SERVERS TOPIC FOLDER [crash]`.

It reads from `latest` and adds the values of each micro-batch to a file. With `crash` it kills itself, Spark's Java
process included, in the middle of its first micro-batch; without it, the job ends when it has read everything.
"""

import os
import signal
import sys
from pathlib import Path

from pyspark.sql import DataFrame

from tests.spark.conftest import new_session
from tests.spark.filling import read_stream


def main() -> None:
    servers, topic, folder, *crash = sys.argv[1:]
    spark = new_session()

    def write(batch: DataFrame, number: int) -> None:
        values = [row.value for row in batch.collect()]
        if crash:
            os.killpg(0, signal.SIGKILL)
        with (Path(folder) / "values").open("ab") as file:
            file.writelines(value + b"\n" for value in values)

    stream = read_stream(spark, servers, subscribe=topic).writeStream.foreachBatch(write)
    stream = stream.option("checkpointLocation", f"{folder}/checkpoint")
    query = stream.trigger(**({"processingTime": "0 seconds"} if crash else {"availableNow": True})).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
