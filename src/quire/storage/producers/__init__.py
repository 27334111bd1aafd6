"""Producers of a partition: epochs, sequence numbers and open transactions.

`producer_state.py` is the state in memory, `producer_snapshot.py` its file, and `producer_replay.py` rebuilds it from
both snapshot and log. `end_marker.py` is the control batch that ends a transaction, and `uncommitted_markers.py` says
which of these still hold the last stable offset back.
"""
