"""The current state of the cluster, as a replay of the metadata log, and its changes.

`image.py` is the state, `replay.py` applies a record to it and notes the change in a `delta.py`. `loader.py` applies
committed records and calls the publishers. `snapshot.py` turns an image back into records. Imports protocol and the
seams only; `quire.raft` agrees on the records.
"""
