"""Committed offsets: one per group, topic and partition.

store            the state: committed offsets, and pending ones of open transactions; only records change it
commit           OffsetCommit and TxnOffsetCommit
fetch, delete    OffsetFetch and OffsetDelete
expiry           deletes offsets that have not been used for the retention time
deleted_topics   deletes the offsets of deleted topics
offsets          all of these together, for the machine

Guarantees: only a commit that is later in the log replaces an acknowledged one, also after compaction. An offset that
was committed in a transaction takes effect when the transaction is committed, or never.
"""
