"""Classic groups: the members agree among themselves, and the coordinator only brings them together.

        JoinGroup                SyncGroup (the leader's has the assignment)      Heartbeat
            │                         │                                               │
    ┌──── Empty ──▶ PreparingRebalance ──▶ CompletingRebalance ──▶ Stable ────────────┘
    │                  ▲   │ everybody is there,    │ │ the record is     │
    │                  │   │ or time is up          │ │ committed         │
    │                  │   ▼                        │ └───────────────────┤
    │                  │  Empty (nobody is left)    ▼                     ▼
    │                  └────────────────────── somebody joins, leaves, is not heard of, wants something else
    ▼
   Dead (its record is a tombstone, or this node is no longer its coordinator)

`state` has the table behind that picture, `classic_group` and `member` what is known about a group, `protocol_vote` how
it finds its assignor, `group_record` what of it is written down, `sessions` and `rounds` what time brings about,
`joins`, `syncs` and `leaves` the requests. `classic_groups` puts these together for the shard.

A generation is written down once, when its leader has handed in the assignment; whoever waits for it is answered when
that record is committed. So an assignment that anybody acts on is in the log, and there is one per generation.
"""
