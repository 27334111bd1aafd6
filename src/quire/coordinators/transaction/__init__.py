"""Transactions: the state machine behind `__transaction_state`, and the markers that end what it began.

    InitProducerId ──▶ Empty ──AddPartitions──▶ Ongoing ──EndTxn, a timeout──▶ PrepareCommit, PrepareAbort
                         ▲                         ▲      or a newer producer             │ committed: cannot be
                         │                         │                                      ▼ undone any more
                         │                         │                   marker_sender: a marker in each partition
                         │                         │                                      │ all are there
                         └─────InitProducerId──────┴──AddPartitions── CompleteCommit, CompleteAbort

`states` has the states and which may follow which, `transaction` what is kept of one transactional id; one file per
request says what that does. `machine` puts them together and is what others use.

Two protocols. In the first a producer keeps its epoch from transaction to transaction. In the second (KIP-890, spoken
by whoever sends EndTxn 5 or lets Produce add partitions) every end of a transaction gives it the next epoch, so that
what is late is seen to be: an EndTxn cannot end the transaction after its own, a marker cannot, a batch cannot join it.

An answer waits until everything it rests on is committed, refusals too. So operations look at the newest state, whether
it is committed yet or not: if it never is, nobody has heard of it.
"""
