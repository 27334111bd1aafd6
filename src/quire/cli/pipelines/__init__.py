"""`quire pipelines` and `quire dlq`: data pipelines on Spark, and the records that they could not process.

`pipelines` has the smaller commands, `run` runs pipelines, `check` is its --dry-run, and `state` finds the files and
the state of the pipelines that a command names. `dlq` shows dead letters and `dlq_replay` sends them back. Both use
`dlq_reading`, which finds and sorts the letters, and `dlq_marks`, which knows those that were sent back.
"""
