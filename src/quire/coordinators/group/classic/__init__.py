"""Classic groups: the members agree on the assignment, and the coordinator synchronizes them.

           JoinGroup               all members joined,       the leader's assignment
                                   or the timeout passed     is committed
    Empty ─────────▶ PreparingRebalance ─────▶ CompletingRebalance ─────▶ Stable
      ▲ no members     │  ▲                       │                         │
      └────────────────┘  └───────────────────────┴─────────────────────────┘
                          a member joins, leaves, changes its protocols, or its session expires

A group in any state is Dead after its tombstone.

state              the table behind the picture
classic_group      the group: members, generation, leader; `member` is one of them
protocol_vote      how the group selects its protocol (a consumer's assignor)
rebalance          the join phase and the sync phase; `sessions` has the timers of members
join_group, sync_group, leave_group   the requests; `join_response` is what a joined member gets
group_record       the group as one record in the log, and back
classic_groups     all of these together, for the shard

The coordinator writes a generation once, when its leader has sent the assignment. SyncGroup requests are answered when
that record is committed. So every assignment that a member uses is in the log, and each generation has one.
"""
