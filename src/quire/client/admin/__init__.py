"""Administration of topics, configs, the cluster, groups and transactions.

Each operation is one function that takes a `Cluster`; run it with `steps.perform` or `BlockingClient.run`. An error
about one topic or resource is its result; an error about the whole request is raised.
"""
