"""Administration, as operations to be run with `steps.perform` or `BlockingClient.run`: topics, configs, the cluster,
groups and transactions.

Each operation is one function that takes a `Cluster`. Errors that concern one topic or one resource come back beside
the others' results; errors that concern the whole request are raised.
"""
