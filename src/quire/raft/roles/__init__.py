"""The roles of a replica, one per file. The table in `quire.raft.transitions` says which may follow which."""
