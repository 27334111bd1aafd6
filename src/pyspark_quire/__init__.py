"""Quire for Spark: `spark.read.format("quire")`, `readStream`, `write` and `writeStream`, without a jar.

Spark finds the packages named `pyspark_*` and registers the `DefaultSource` of each, so installing Quire with `[spark]`
is enough. From the outside in:

    datasource      the entry point for Spark: a schema, readers, writers
    options         the options and how their values are parsed
    batch_reader    from the options to splits, once
    stream_reader   from the options and the offsets of the last micro-batch to the next
    reading         one split to Arrow record batches, in a task; `fetching` fetches it
    batch_writer    tasks that write rows, and the driver's part when they are done
    stream_writer   the same for micro-batches, each exactly once (`exactly_once` says how)
    connect         a client of the cluster
"""

from pyspark_quire.datasource import QuireDataSource as DefaultSource

__all__ = ["DefaultSource"]
