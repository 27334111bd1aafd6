"""One replica of a partition: its log, how far it is committed, and the role that this node has in it.

    partition.py              identity, log, high watermark, leader epoch; reading
    leader_role.py            appends, ISR, acknowledgements, and the requests that wait
    followers.py              the leader's view of its followers: progress, ISR, what is committed
    replica_progress.py       how far one follower has copied the log
    in_sync_replicas.py       the ISR as committed and as proposed (KIP-497)
    members.py                replicas and ISR, as the metadata says
    follower_role.py          copies the leader's log, and truncates what the leader does not have
    replica_reader.py         what a leader reports to the sessions of its followers
    partition_owner.py        what a partition reports to the node that hosts it
    commit_wait.py            a write that waits to be committed or flushed
    fetch_wait.py             a fetch that waits for records
    waiting_fetches.py        the fetches that wait for one partition
    verification_guards.py    which transactions may begin here (KIP-890)
    batch_check.py            validation of a produced batch
    high_watermark.py, leader_epochs.py, settings.py

`Partition` decides, and `quire.storage` writes. Nothing here knows the wire format of requests, sockets or the
controller: the node passes on what the metadata says, through `become_leader`, `become_follower` and `leave_role`.
`leader_role.py` describes the path of a produce with acks=all and of a waiting fetch.
"""
