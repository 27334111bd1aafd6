"""Timeouts of transactions, and expiration of transactional ids.

A transaction that takes longer than its timeout is aborted, and its producer fenced. A transactional id without a
transaction for `transactional.id.expiration.ms` is deleted. Timers look for both periodically, and compare the wall
clock with the times in the records. They handle what they find in portions, so that other requests do not wait long.
"""

import logging
from collections.abc import Iterator
from functools import partial

from quire.coordinators.runtime.record import StateRecord, tombstone
from quire.coordinators.runtime.result import CoordinatorResult
from quire.coordinators.runtime.unsent import encoded
from quire.coordinators.transaction.ending import coordinator_abort
from quire.coordinators.transaction.producer_epochs import NeedsProducerId
from quire.coordinators.transaction.transaction import Transaction
from quire.coordinators.transaction.transaction_shard import TransactionShard
from quire.coordinators.transaction.transaction_state import TransactionState
from quire.coordinators.transaction.transactions import Transactions
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.transaction_records import TransactionLogKey

log = logging.getLogger("quire.coordinators")

PORTION_PARTITIONS = 1_000
"""Partitions of the transactions that one operation aborts. It aborts at least one transaction."""
PORTION_BYTES = 100_000
"""Records of one operation. Fewer if the log takes smaller batches only: it would refuse a larger one every time."""
NO_TIMEOUT_MS = 2**31 - 1
"""The timeout of a transaction that is part of a two-phase commit. Like Apache Kafka, Quire never aborts it."""

TIMEOUTS = "transaction timeouts"
EXPIRY = "transactional id expiry"


class TimeLimits:
    """Looks for timed out transactions while there are open ones, and for expired ids always."""

    __slots__ = ("_is_watching", "_shard", "_transactions")

    def __init__(self, transactions: Transactions, shard: TransactionShard) -> None:
        self._transactions = transactions
        self._shard = shard
        self._is_watching = False

    def start(self) -> None:
        if self._transactions.ongoing:
            self.watch()
        self._schedule_expiry(self._interval_ms("transaction.remove.expired.transaction.cleanup.interval.ms"))

    def watch(self) -> None:
        """Called when a transaction is, or is about to be, open."""
        if not self._is_watching:
            self._is_watching = True
            self._schedule_timeouts(self._interval_ms("transaction.abort.timed.out.transaction.cleanup.interval.ms"))

    def _interval_ms(self, setting: str) -> int:
        return self._transactions.environment.config.get_int(setting)

    def _schedule_timeouts(self, delay_ms: float) -> None:
        self._transactions.environment.timers.schedule(TIMEOUTS, delay_ms, self._abort_timed_out)

    def _schedule_expiry(self, delay_ms: float) -> None:
        self._transactions.environment.timers.schedule(EXPIRY, delay_ms, self._delete_expired)

    # --- Timeouts

    def _abort_timed_out(self, now_ms: int) -> CoordinatorResult[None]:
        self._is_watching = False
        if self._transactions.ongoing:
            self.watch()
        aborted: list[Transaction] = []
        waiting: list[str] = []
        records: list[StateRecord] = []
        partitions = size = 0
        log_takes_bytes = self._transactions.environment.max_batch_bytes()
        for transaction in self._timed_out(now_ms):
            try:
                record = coordinator_abort(self._transactions, transaction, now_ms)
            except NeedsProducerId:
                # No request may change it until there is an id. If none comes, the next timer retries.
                transaction.state = TransactionState.PREPARE_EPOCH_FENCE
                waiting.append(transaction.transactional_id)
                continue
            record_bytes = encoded([record], now_ms)[1]
            if record_bytes > log_takes_bytes:
                log.warning(
                    "the transaction of %s has timed out and cannot be aborted: its record has %d bytes, and the log "
                    "takes %d. Raise max.message.bytes of __transaction_state",
                    transaction.transactional_id,
                    record_bytes,
                    log_takes_bytes,
                )
                continue
            partitions += transaction.partition_count
            size += record_bytes
            if records and (partitions > PORTION_PARTITIONS or size > min(PORTION_BYTES, log_takes_bytes)):
                self._schedule_timeouts(0)
                break
            records.append(record)
            aborted.append(transaction)
        return CoordinatorResult(None, records, partial(self._aborts_written, aborted, waiting))

    def _timed_out(self, now_ms: int) -> Iterator[Transaction]:
        for transaction in self._transactions.ongoing.values():
            if transaction.timeout_ms != NO_TIMEOUT_MS and transaction.start_ms + transaction.timeout_ms < now_ms:
                yield transaction

    def abort(self, transactional_id: str, now_ms: int, new_producer_id: int) -> CoordinatorResult[None]:
        """Aborts the transaction with the new producer id, unless it was aborted meanwhile."""
        transaction = self._transactions.get(transactional_id)
        if transaction is None or transaction.state is not TransactionState.PREPARE_EPOCH_FENCE:
            return CoordinatorResult(None)
        record = coordinator_abort(self._transactions, transaction, now_ms, new_producer_id)
        return CoordinatorResult(None, [record], partial(self._transactions.decision_written, [transaction]))

    def _aborts_written(self, aborted: list[Transaction], waiting: list[str], code: ErrorCode) -> None:
        self._transactions.decision_written(aborted, code)
        if code is ErrorCode.NONE:
            for transactional_id in waiting:
                self._shard.abort_with_new_producer_id(transactional_id)

    # --- Expired transactional ids

    def _delete_expired(self, now_ms: int) -> CoordinatorResult[None]:
        config = self._transactions.environment.config
        oldest_ms = now_ms - config.get_int("transactional.id.expiration.ms")
        interval_ms = self._interval_ms("transaction.remove.expired.transaction.cleanup.interval.ms")
        most_bytes = min(PORTION_BYTES, self._transactions.environment.max_batch_bytes())
        records: list[StateRecord] = []
        size = 0
        for transaction in self._transactions:
            if transaction.last_update_ms > oldest_ms or not transaction.is_at_rest:
                continue
            record = tombstone(TransactionLogKey(transactional_id=transaction.transactional_id))
            size += encoded([record], now_ms)[1]
            if records and size > most_bytes:
                interval_ms = 0
                break
            records.append(record)
        self._schedule_expiry(interval_ms)
        return CoordinatorResult(None, records)
