"""Quire for Spark: `spark.read.format("quire")`, `readStream`, `write` and `writeStream`, without a jar.

Spark looks through the packages named `pyspark_*` that Python can import, and takes the `DefaultSource` of each by
itself: installing Quire with `[spark]` is all it takes. From the outside in:

    datasource      what Spark asks for by name: a schema, readers, writers
    options         the options and how their texts are read
    batch_reader    from the options to splits, once
    stream_reader   from the options and the offsets of the last micro-batch to the next
    reading         one split to Arrow record batches, in a task; fetching gets what it needs
    batch_writer    tasks that write rows, and what the driver does when they are done
    stream_writer   the same for micro-batches, each exactly once (`exactly_once` says how)
    connect         a client of the cluster
"""

from pyspark_quire.datasource import QuireDataSource as DefaultSource

__all__ = ["DefaultSource"]
