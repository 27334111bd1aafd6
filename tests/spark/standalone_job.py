"""A driver for a cluster: copies a topic to another, exactly once, until it has copied everything.

Run as a program: MASTER SERVERS TOPIC COPY FOLDER.
"""

import json
import sys

from quire.spark.session import spark_session
from tests.spark.standalone_cluster import SHORT_LIVED

SMALL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.executor.memory": "512m",
    "spark.cores.max": "2",
    "spark.task.maxFailures": "8",
}


def main(master: str, servers: str, topic: str, copy: str, folder: str) -> None:
    spark = spark_session("standalone", master, SMALL)
    rows = (
        spark.readStream.format("quire")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 1_000)
        .load()
    )
    copying = (
        rows.select("key", "value")
        .writeStream.format("quire")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", copy)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    copying.awaitTermination()
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    print(json.dumps({"executors": executors}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
