"""Classic groups: the members agree among themselves, and the coordinator only brings them together.

           JoinGroup               everybody joined,         the leader's SyncGroup
                                   or time is up             is written down
    Empty ─────────▶ PreparingRebalance ─────▶ CompletingRebalance ─────▶ Stable
      ▲ nobody is left │  ▲                       │                         │
      └────────────────┘  └───────────────────────┴─────────────────────────┘
                          somebody joins, leaves, is not heard of, or wants something else

Any of them is Dead when its record is replaced by a tombstone.

`state` has the table behind that picture, `classic_group` and `member` what is known about a group, `protocol_vote` how
it finds its assignor, `group_record` what of it is written down, `sessions` and `rounds` what time brings about,
`joins`, `syncs` and `leaves` the requests. `classic_groups` puts these together for the shard.

A generation is written down once, when its leader has handed in the assignment; whoever waits for it is answered when
that record is committed. So an assignment that anybody acts on is in the log, and there is one per generation.
"""
