"""Helpers for pipelines on Spark, around `format("quire")`.

    session        a SparkSession with settings that suit streams on one machine
    parsing        JSON by a schema and named rules: good rows on one side, dead letters on the other
    dead_letters   what a dead letter's headers say (also for `quire dlq`, without Spark)
    delta          a Delta table that takes every batch of a stream once
    pipeline_file  one YAML file a pipeline
    runner         runs the queries of pipelines, and stops them in order
    progress       what the queries report: rows, time, state, and counts that add up

Nothing is imported here, so that what needs no Spark does without it.
"""

INSTALL_SPARK = "pip install 'quire-log[spark]', or in Quire's folder: pip install '.[spark]'"
"""What a message tells a user to whom something of this is missing."""
