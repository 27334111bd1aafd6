"""Consumer groups of the consumer protocol (KIP-848): the coordinator assigns partitions in its heartbeat responses.

A group has a group epoch, which grows when its members, their subscriptions or the topics change; a target assignment,
which an assignor computes for one group epoch; and for each member a current assignment with a member epoch. A
heartbeat has up to four steps, and each change is a record:

    1. the member joins, or changes its subscription                ConsumerGroupMemberMetadata
    2. something has changed: the group epoch grows                 ConsumerGroupMetadata
    3. the target is older than the group epoch: a new one          ConsumerGroupTargetAssignmentMember, -Metadata
    4. the member moves towards its target                          ConsumerGroupCurrentMemberAssignment

A member gets to a newer epoch only after it has revoked the partitions that are no longer its own, and gets a partition
only when no other member owns it. So no member waits for all others, and no partition ever has two owners.

consumer_groups                  all groups of a shard: requests, records, timers
consumer_group, member           the state; `records` converts it
heartbeat                        the four steps; `membership` finds the member, `changes` writes the records,
                                 `reconciliation` is the fourth step
target, target_runs, assignors   target assignments; large ones are computed in turns
metadata_hash, freshness         notice changed topics
sessions, member_removal         members that leave or are fenced
classic_members, migration       groups with members of the classic protocol
"""
