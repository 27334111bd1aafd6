"""The controller: commands about the cluster become metadata records, and are answered when these are committed.

`controller.py` is the active controller on top of the metadata log. The managers beside it (topics, partitions,
configs, features, brokers, producer ids) are plain functions from the state and a request to records and a response:
they write nothing and wait for nothing. `elections.py` and `replica_placement.py` are what several of them share.
"""
