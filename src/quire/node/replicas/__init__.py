"""Replication between brokers: the requests that copy partitions, and those that keep the ISR right.

replicas.py          `Replicas`: what the node and its partitions call; which partitions are copied from where
fetcher.py           a follower's side: copies all partitions that one other node leads, over one connection
fetch_schedule.py    which partitions the next fetch names, and which wait (errors, flushes)
log_joining.py       where a follower continues if its log does not overlap with the leader's
follower_fetch.py    a leader's side: answers the fetches of followers
throttles.py         the replication quotas of this broker, as the settings say (KIP-73)
replication_quota.py a quota: what is throttled, whether it is used up, who waits for it
rate_window.py       bytes per second over the last samples
whole_batches.py     what a throttled follower can use of a slice
throttled_copies.py  which throttled partitions a follower asks for
replica_session.py   what a leader remembers of a follower's fetches (KIP-227)
isr_changes.py       asks the controller for changes of the ISR (AlterPartition)
segment_repairs.py   replaces damaged segments by copies from other replicas

    follower                                             leader
    ReplicaFetcher ── Fetch: the end of each log ──────▶ follower_fetch: that is what the follower has
        ▲                                                    │ Followers.fetched: the high watermark moves
        │                                                    │ nothing to read? ReplicaSession waits for an append
        └── records, high watermark, or where it diverges ◀──┘
    FollowerRole.append, or LogDirectory.truncate

Both sides handle only partitions that have changed since the last fetch, however many there are.
"""

from quire.node.replicas.replicas import Replicas

__all__ = ["Replicas"]
