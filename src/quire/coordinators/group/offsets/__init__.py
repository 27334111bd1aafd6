"""What groups, and single consumers, have committed: one offset per group, topic and partition.

`store` is the state, changed by records alone: what is committed, and what open transactions want to be. Around it, one
file per thing that can be asked for: `commit` (plain and in a transaction), `fetch`, `delete`. Two things happen by
themselves: `expiry` forgets what nobody has used for long, `deleted_topics` what belonged to a topic that is gone.
`Offsets` puts them together for the group coordinator's state machine.

Guaranteed: an acknowledged commit is replaced by a later one alone, later by its place in the log, however the log was
compacted since; one in a transaction counts from the moment the transaction is committed, or never.
"""
