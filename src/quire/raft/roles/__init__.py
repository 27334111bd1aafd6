"""The roles a replica plays, one per file. What each may turn into is the table in `quire.raft.transitions`."""
