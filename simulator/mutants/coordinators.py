"""Mistakes of coordinators and of the transactions that they end (quire.coordinators, quire.node)."""

from simulator.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a coordinator answers before it has loaded",
        "quire.coordinators.runtime.shard:Shard.run",
        "if self.state is not _ACTIVE:",
        "if self.state is ShardState.UNLOADED:",
    ),
    Mutant(
        "a coordinator loads only what is committed yet",
        "quire.node.own_state_log:OwnStateLog.bounds",
        "Bounds(leader.log.start_offset, leader.log.end_offset)",
        "Bounds(leader.log.start_offset, leader.partition.high_watermark)",
    ),
    Mutant(
        "a coordinator answers before its records are committed",
        "quire.coordinators.runtime.shard:Shard._respond",
        "self._deferred.append((self._last_number, pending, value, when_written))",
        "pending.complete_once(value)",
    ),
    Mutant(
        "a marker counts as written when it was refused",
        "quire.coordinators.transaction.marker_sender:MarkerSender._responded",
        "if codes.get((producer_id, *partition)) in _SETTLED:",
        "if True:",
    ),
    Mutant(
        "a new producer gets the epoch of the one before",
        "quire.coordinators.transaction.init_producer_id:_next_epoch",
        "return _initialized(transaction, request, epoch + 1, continues_from, now_ms, log_version)",
        "return _initialized(transaction, request, epoch, continues_from, now_ms, log_version)",
    ),
    Mutant(
        "a producer that was replaced may take over again",
        "quire.coordinators.transaction.init_producer_id:_may_continue",
        "return transaction.state is not TransactionState.ONGOING and _is_repeated(transaction, expected)",
        "return True",
    ),
    Mutant(
        "a partition that is not known here is taken for deleted",
        "quire.coordinators.transaction.marker_sender:MarkerSender._route",
        "if leader is None and self._has_latest_image(pending):",
        "if leader is None or leader == NO_LEADER:",
    ),
    Mutant(
        "a batch opens a transaction without its coordinator",
        "quire.replication.leader_role:LeaderRole._check_transaction",
        "if guard is None or not guard.is_valid or header.producer_id != guard.producer_id:",
        "if False:",
    ),
)
