"""Helpers for pipelines on Spark, around `format("quire")`.

    session        a SparkSession with settings that suit streams on one machine
    parsing        JSON by a schema and named rules: good rows on one side, dead letters on the other
    dead_letters   the headers of dead letters (also for `quire dlq`, without Spark)
    delta          a Delta table that appends every batch of a stream once
    pipeline_file  the YAML file of a pipeline
    runner         runs the queries of pipelines, and stops them in order
    progress       what the queries report: rows, time, state, and counts that add up
    state_folder   checkpoints, tallies and status of a pipeline on disk
    status_table   the status of pipelines as a table

This file imports nothing, so that modules which do not need Spark work without it.
"""

INSTALL_SPARK = "in Quire's folder: pip install '.[spark]'"
"""How to install the extra, for error messages."""
