"""What the cluster looks like now, as a replay of the metadata log, and what changed.

`image.py` is the picture, `replay.py` lets a record change it and notes the change in a `delta.py`, `loader.py` feeds
it what raft has committed and tells the publishers. `snapshot.py` turns a picture back into the records that draw it.
Imports protocol and the seams only; where records come from and how they are agreed on is `quire.raft`'s concern.
"""
