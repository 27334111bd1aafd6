"""Moving replicas between the data directories of this broker (AlterReplicaLogDirs), while they serve.

disk_moves.py   `DiskMoves`: requests, how many moves run at a time, what ends a move
disk_move.py    `DiskMove`: one replica, from its first copied batch until its old folder is gone
copying.py      `Copying`: the part of it that fills the future log
move_state.py   the states of a move, and why a crash in each of them loses nothing
portion.py      what one job reads from the original
common_end.py   up to where two logs of one replica are the same
leftovers.py    at a start: which of two logs of a replica is the right one

The copy is a future log (`quire.storage.directory.future_logs`), which is appended to like the log of a follower.
"""

from quire.node.moves.disk_moves import DiskMoves

__all__ = ["DiskMoves"]
