"""What happens to a transaction that nobody ends, and to a transactional id that nobody uses.

A transaction that takes longer than its producer announced is aborted, and the producer fenced. A transactional id that
has been at rest for `transactional.id.expiration.ms` is forgotten. Both are looked at every so often, by the wall clock
that is in the records; what is found is dealt with in portions, so that nobody else waits long.
"""

import logging
from collections.abc import Callable, Iterator

from quire.coordinators.runtime.record import StateRecord, tombstone
from quire.coordinators.runtime.result import Result
from quire.coordinators.runtime.unsent import encoded
from quire.coordinators.transaction.ending import by_the_coordinator
from quire.coordinators.transaction.producer_epochs import NeedsProducerId
from quire.coordinators.transaction.states import State
from quire.coordinators.transaction.transaction import Transaction
from quire.coordinators.transaction.transactions import Transactions
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.transaction_records import TransactionLogKey

log = logging.getLogger("quire.coordinators")

PORTION_PARTITIONS = 1_000
"""Of transactions that are aborted at once; at least one is."""
PORTION_BYTES = 100_000
"""Of transactional ids that are forgotten, or whose transactions are aborted, at once; less where the log takes less:
what is more than a batch may hold would be refused as a whole, time and again."""
NO_TIMEOUT_MS = 2**31 - 1
"""Of a transaction that is part of a two-phase commit: Apache Kafka leaves it open for as long as it takes."""

TIMEOUTS = "transaction timeouts"
EXPIRY = "transactional id expiry"

WantProducerId = Callable[[str], None]
"""Gets a producer id for the transaction of this id, and runs `TimeLimits.abort` with it."""


class TimeLimits:
    """Looks for timed out transactions while there are open ones, and for unused ids always."""

    __slots__ = ("_is_watching", "_transactions", "_want_producer_id")

    def __init__(self, transactions: Transactions, want_producer_id: WantProducerId) -> None:
        self._transactions = transactions
        self._want_producer_id = want_producer_id
        self._is_watching = False

    def start(self) -> None:
        if self._transactions.ongoing:
            self.watch()
        self._schedule_expiry(self._interval_ms("transaction.remove.expired.transaction.cleanup.interval.ms"))

    def watch(self) -> None:
        """There is, or is about to be, an open transaction."""
        if not self._is_watching:
            self._is_watching = True
            self._schedule_timeouts(self._interval_ms("transaction.abort.timed.out.transaction.cleanup.interval.ms"))

    def _interval_ms(self, setting: str) -> int:
        return self._transactions.surroundings.config.get_int(setting)

    def _schedule_timeouts(self, delay_ms: float) -> None:
        self._transactions.surroundings.timers.schedule(TIMEOUTS, delay_ms, self._abort_timed_out)

    def _schedule_expiry(self, delay_ms: float) -> None:
        self._transactions.surroundings.timers.schedule(EXPIRY, delay_ms, self._forget_unused)

    # Transactions that take too long

    def _abort_timed_out(self, now_ms: int) -> Result[None]:
        self._is_watching = False
        if self._transactions.ongoing:
            self.watch()
        aborted: list[Transaction] = []
        waiting: list[str] = []
        records: list[StateRecord] = []
        partitions = size = 0
        log_takes_bytes = self._transactions.surroundings.max_batch_bytes()
        for transaction in self._timed_out(now_ms):
            try:
                record = by_the_coordinator(self._transactions, transaction, now_ms)
            except NeedsProducerId:
                # Until there is one nobody may touch it. If none comes it is asked for again next time.
                transaction.state = State.PREPARE_EPOCH_FENCE
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
        return Result(None, records, self._when_written(aborted, waiting))

    def _timed_out(self, now_ms: int) -> Iterator[Transaction]:
        for transaction in self._transactions.ongoing.values():
            if transaction.timeout_ms != NO_TIMEOUT_MS and transaction.start_ms + transaction.timeout_ms < now_ms:
                yield transaction

    def abort(self, transactional_id: str, now_ms: int, fresh_id: int) -> Result[None]:
        """A producer id has come for a transaction that is to be aborted; that may have been done by now."""
        transaction = self._transactions.get(transactional_id)
        if transaction is None or transaction.state is not State.PREPARE_EPOCH_FENCE:
            return Result(None)
        record = by_the_coordinator(self._transactions, transaction, now_ms, fresh_id)
        return Result(None, [record], self._when_written([transaction], []))

    def _when_written(self, aborted: list[Transaction], waiting: list[str]) -> Callable[[ErrorCode], None]:
        def written(reason: ErrorCode) -> None:
            if reason is not ErrorCode.NONE:
                return
            self._transactions.write_markers(aborted)
            for transactional_id in waiting:
                self._want_producer_id(transactional_id)

        return written

    # Transactional ids that nobody uses

    def _forget_unused(self, now_ms: int) -> Result[None]:
        config = self._transactions.surroundings.config
        oldest_ms = now_ms - config.get_int("transactional.id.expiration.ms")
        interval_ms = self._interval_ms("transaction.remove.expired.transaction.cleanup.interval.ms")
        most_bytes = min(PORTION_BYTES, self._transactions.surroundings.max_batch_bytes())
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
        return Result(None, records)
