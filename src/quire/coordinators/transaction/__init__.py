"""Transactions: the state machine of `__transaction_state`, and the markers that end transactions.

    InitProducerId ──▶ Empty ──AddPartitions──▶ Ongoing ──EndTxn, timeout──▶ PrepareCommit, PrepareAbort
                         ▲                         ▲      or new producer              │ committed: the decision
                         │                         │                                   ▼ is final
                         │                         │                marker_sender: a marker in each partition
                         │                         │                                   │ all are written
                         └─────InitProducerId──────┴──AddPartitions── CompleteCommit, CompleteAbort

transaction_state   the states and their transitions
transaction         the state of one transactional id; `transactions` has all of a shard
init_producer_id, add_partitions, end_txn, listing   one file per request
ending              the records that end a transaction
marker_sender       sends the markers; `pending_markers` has those that are not written yet
time_limits         aborts transactions that time out, deletes transactional ids that expire
machine             all of these together, for the shard

The path of an EndTxn request:

    node/api/end_txn.handle
      transaction_requests.run_with_producer_id     authorizes, finds the shard
        Shard.run                                   calls the operation, which returns a CoordinatorResult
          TransactionMachine.end_txn
            end_txn.end_txn                         looks up the EndTxnAction in the table of the protocol
              ending.decision_result                writes PrepareCommit or PrepareAbort
    the decision is committed: the client gets its response, and
      Transactions.decision_written
        MarkerSender.write                          sends WriteTxnMarkers to the leaders of the partitions
          node/api/write_txn_markers.handle         on each of these nodes
        MarkerSender._responded                     until no partition misses its marker
          TransactionShard.markers_written          node/transaction_shard.py runs
            TransactionMachine.markers_written      writes CompleteCommit or CompleteAbort

There are two protocols. In protocol 1 a producer keeps its epoch from transaction to transaction. In protocol 2
(KIP-890: clients that send EndTxn 5 and let Produce add partitions) every end of a transaction gives the producer the
next epoch. So late requests are recognized: a late EndTxn cannot end the next transaction, a late marker cannot either,
and a late batch cannot become part of it.

A response waits until all records that it depends on are committed, and so do errors. So operations may use state that
is not committed yet: if it is lost, no client has seen it.
"""
