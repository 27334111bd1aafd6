"""The requests of one transaction, with either protocol. Each is retried until the answer is conclusive.

With protocol 1 a producer adds partitions and groups to its transaction before it writes to them; with protocol 2 the
cluster does that at the first write. A producer that is refused (`Fenced`) must have been replaced, or have taken too
long.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Any

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from quire.protocol.messages.end_txn import EndTxnRequest
from quire.protocol.messages.produce import ProduceRequest
from quire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from quire.protocol.records import Compression
from quire.protocol.schema import Message
from simulator.clients.batches import Batch
from simulator.clients.client import SimClient
from simulator.clients.coordinator import NOT_NOW
from simulator.clients.produce import FIRST_VERSION_WITH_ZSTD, base_offset_for, judge, request_for
from simulator.clients.routes import group as coordinator_of
from simulator.clients.routes import transaction
from simulator.clients.wire import Lost
from simulator.ledger import PartitionBook
from simulator.transaction_ledger import Session, TransactionBook
from simulator.violation import Violation

ACKS_ALL = -1
PROTOCOL_2 = 2
FIRST_PRODUCE_OF_PROTOCOL_2 = 12
FIRST_END_TXN_OF_PROTOCOL_2 = 5
FIRST_TXN_OFFSET_COMMIT_OF_PROTOCOL_2 = 5
LAST_ADD_PARTITIONS_OF_CLIENTS = 3
OLDEST_TRANSACTIONAL_PRODUCE = 3

AGAIN = (*NOT_NOW, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS)
FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
NUMBERS_USED = (ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
"""A batch has the sequence numbers of another one, whose transaction has ended."""
SURELY_NOT_DONE = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)

ErrorsOf = Callable[[Any], list[int]]


class Fenced(Exception):  # noqa: N818
    """The session has ended: another one, or the coordinator, has ended its transaction, or it needs a new epoch."""


@dataclass(slots=True, eq=False)
class Ongoing:
    """A transaction that a producer has begun, with its protocol."""

    book: TransactionBook
    protocol: int
    era: int
    timeout_ms: float
    began_ms: float
    clock_changes: int
    added: dict[PartitionBook, None] = field(default_factory=dict)
    added_groups: dict[str, None] = field(default_factory=dict)
    in_doubt: bool = False
    """Some request may or may not have been executed, or may still be."""

    @property
    def session(self) -> Session:
        return self.book.session


class TransactionRequests:
    """Sends the requests of one client."""

    def __init__(self, client: SimClient) -> None:
        self._client = client
        self._scene = client.scene

    # --- Adding partitions and groups

    async def add_partitions(self, ongoing: Ongoing, books: Sequence[PartitionBook]) -> None:
        """Protocol 1 only."""
        new = [book for book in books if book not in ongoing.added]
        if ongoing.protocol == PROTOCOL_2 or not new:
            return
        topics: dict[str, list[int]] = {}
        for book in new:
            topics.setdefault(book.topic.name, []).append(book.index)
        session = ongoing.session
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=session.owner.name,
            v3_and_below_producer_id=session.producer_id,
            v3_and_below_producer_epoch=session.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()
            ],
        )
        await self._repeat_until_answered(ongoing, request, errors_of_added, at_most=LAST_ADD_PARTITIONS_OF_CLIENTS)
        ongoing.added.update(dict.fromkeys(new))

    async def write(self, ongoing: Ongoing, batches: Sequence[Batch], reused: Container[PartitionBook] = ()) -> None:
        """Writes one batch to each of several partitions; in those in `reused`, its numbers may have been used."""
        oldest, newest = OLDEST_TRANSACTIONAL_PRODUCE, FIRST_PRODUCE_OF_PROTOCOL_2 - 1
        if any(batch.compression is Compression.ZSTD for batch in batches):
            oldest = FIRST_VERSION_WITH_ZSTD
        if ongoing.protocol == PROTOCOL_2:
            oldest, newest = FIRST_PRODUCE_OF_PROTOCOL_2, 99
        left = list(batches)
        for batch in left:
            self._scene.ledger.transactions.sent(ongoing.book, batch.book, batch.values)
        while left:
            left = [
                again
                for part in await self._parts(left)
                for again in await self._write(ongoing, part, (oldest, newest), reused)
            ]
            if left:
                await self._client.back_off()

    async def _parts(self, batches: list[Batch]) -> list[list[Batch]]:
        """By the leaders of their partitions."""
        leaders = await self._client.by_leader([batch.book for batch in batches])
        return [[batch for batch in batches if batch.book in books] for books in leaders.values()]

    async def _write(
        self, ongoing: Ongoing, left: list[Batch], versions: tuple[int, int], reused: Container[PartitionBook]
    ) -> list[Batch]:
        """Sends batches to one node; returns those that have to be sent again."""
        client, session = self._client, ongoing.session
        wire = await client.connected(left[0].book)
        self._check_era(ongoing)
        was_superseded = session.superseded
        for batch in left:
            batch.sending(wire, 1)
        request = request_for(left, ACKS_ALL)
        request.transactional_id = session.owner.name
        try:
            answer = await client.answer(client.send(wire, request, client.version(ProduceRequest, *versions)))
        except Lost:
            ongoing.in_doubt = True
            return left
        again = []
        for batch in left:
            error, base_offset = base_offset_for(client, batch, answer)
            if error in NUMBERS_USED and batch.book in reused:
                client.expect(error, f"a batch for {batch.book}", *NUMBERS_USED)
                raise Fenced(error.name)
            # A leader that was deposed may ask a coordinator that was, which knows an earlier epoch of the producer.
            lags = not batch.book.leadership.is_current(batch.floor.epoch)
            if self._judged(ongoing, error, f"a batch for {batch.book}", lags=lags):
                self._scene.checker.transactions.let_in(session, was_superseded, f"a batch for {batch.book}")
                judge(client, batch, error, base_offset, ())
            else:
                again.append(batch)
        return again

    async def commit_offsets(self, ongoing: Ongoing, group: str, offsets: dict[PartitionBook, int]) -> None:
        session = ongoing.session
        if ongoing.protocol != PROTOCOL_2 and group not in ongoing.added_groups:
            adding = AddOffsetsToTxnRequest(
                transactional_id=session.owner.name,
                producer_id=session.producer_id,
                producer_epoch=session.epoch,
                group_id=group,
            )
            await self._repeat_until_answered(ongoing, adding, lambda answer: [answer.error_code])
            ongoing.added_groups[group] = None
        ledger = self._scene.offsets
        while True:
            await self._client.connected(coordinator_of(group))
            self._check_era(ongoing)
            was_superseded = session.superseded
            attempts = [ledger.attempt(group, book, offset, ongoing.book) for book, offset in offsets.items()]
            request = TxnOffsetCommitRequest(
                transactional_id=session.owner.name,
                group_id=group,
                producer_id=session.producer_id,
                producer_epoch=session.epoch,
                topics=[
                    TxnOffsetCommitRequestTopic(
                        name=book.topic.name,
                        partitions=[
                            TxnOffsetCommitRequestPartition(
                                partition_index=book.index,
                                committed_offset=attempt.offset,
                                committed_metadata=attempt.tag,
                            )
                        ],
                    )
                    for book, attempt in zip(offsets, attempts, strict=True)
                ],
            )
            oldest = FIRST_TXN_OFFSET_COMMIT_OF_PROTOCOL_2 if ongoing.protocol == PROTOCOL_2 else 0
            newest = 99 if ongoing.protocol == PROTOCOL_2 else FIRST_TXN_OFFSET_COMMIT_OF_PROTOCOL_2 - 1
            try:
                answer = await self._client.ask(request, coordinator_of(group), at_least=oldest, at_most=newest)
            except Lost:
                ongoing.in_doubt = True
                await self._client.back_off()
                continue
            codes = [each.error_code for topic in answer.topics for each in topic.partitions]
            done = [self._judged(ongoing, ErrorCode(code), f"offsets of {group}") for code in codes]
            if len(done) != len(attempts):
                raise Violation("every partition of a request is answered", f"{self._client.name} got {len(done)}")
            if all(done):
                self._scene.checker.transactions.let_in(session, was_superseded, f"offsets of {group}")
                for attempt in attempts:
                    ledger.acknowledged(attempt, copies_left=self._client.sent_twice)
                return
            await self._client.back_off()

    # --- Ending

    async def end(self, ongoing: Ongoing, *, commit: bool) -> None:
        session, book = ongoing.session, ongoing.book
        request = _end_request(session, commit)
        oldest, newest = _end_versions(ongoing.protocol)
        unknown = False
        while True:
            await self._client.connected(transaction(session.owner.name))
            self._check_era(ongoing)
            book.commit_asked = book.commit_asked or commit
            was_superseded = session.superseded
            try:
                answer = await self._client.ask(
                    request, transaction(session.owner.name), at_least=oldest, at_most=newest
                )
            except Lost:
                unknown = ongoing.in_doubt = True
                await self._client.back_off()
                continue
            unknown = unknown or self._client.sent_twice
            error = ErrorCode(answer.error_code)
            if error in FENCED and not unknown:
                book.commit_asked = False
            if self._judged(ongoing, error, "EndTxn"):
                break
            unknown = unknown or error not in SURELY_NOT_DONE
            await self._client.back_off()
        self._scene.checker.transactions.let_in(session, was_superseded, "EndTxn")
        self._ended(ongoing, commit)
        if ongoing.protocol == PROTOCOL_2:
            session.owner.moved_on(session, (answer.producer_id, answer.producer_epoch))

    async def end_unheard(self, ongoing: Ongoing, *, commit: bool, patience_ms: float) -> None:
        """Requests the end of the transaction, but waits only briefly for the answer."""
        wire = await self._client.connected(transaction(ongoing.session.owner.name))
        self._check_era(ongoing)
        ongoing.book.commit_asked = commit
        version = self._client.version(EndTxnRequest, *_end_versions(ongoing.protocol))
        wire.ask(_end_request(ongoing.session, commit), version, patience_ms)
        await self._scene.sleep(patience_ms)
        wire.abort()

    def _ended(self, ongoing: Ongoing, commit: bool) -> None:
        ledger = self._scene.ledger
        if commit:
            if ongoing.book.trace is False and not ongoing.book.suspended:
                raise Violation("an acknowledged commit holds", f"{ongoing.book} is aborted {ongoing.book.trace_text}")
            ongoing.book.committed_tick = ledger.ticks.next()
            ledger.counts.transactions_committed += 1
        else:
            ledger.counts.transactions_aborted += 1

    # --- Asking

    async def _repeat_until_answered(
        self, ongoing: Ongoing, request: Message, errors_of: ErrorsOf, *, at_most: int = 99
    ) -> None:
        what, coordinator = type(request).__name__, transaction(ongoing.session.owner.name)
        while True:
            await self._client.connected(coordinator)
            self._check_era(ongoing)
            was_superseded = ongoing.session.superseded
            try:
                answer = await self._client.ask(request, coordinator, at_most=at_most)
            except Lost:
                ongoing.in_doubt = True
                await self._client.back_off()
                continue
            done = [self._judged(ongoing, ErrorCode(code), what) for code in errors_of(answer)]
            if all(done):
                self._scene.checker.transactions.let_in(ongoing.session, was_superseded, what)
                return
            await self._client.back_off()

    def _judged(self, ongoing: Ongoing, error: ErrorCode, what: str, *, lags: bool = False) -> bool:
        """True if it is done, False if the client must retry; raises Fenced if a retry is pointless.

        `lags` says that the node that answered may know less than others.
        """
        client = self._client
        may_end = lags or ongoing.session.may_be_fenced or self._may_have_timed_out(ongoing)
        allowed = (*AGAIN, *client.excuses, *(FENCED if may_end else ()))
        client.expect(error, f"{what} of {ongoing.book}", *allowed)
        if error in FENCED:
            raise Fenced(error.name)
        if client.sent_twice or (error is not ErrorCode.NONE and error not in SURELY_NOT_DONE):
            ongoing.in_doubt = True
        return error is ErrorCode.NONE

    def _may_have_timed_out(self, ongoing: Ongoing) -> bool:
        took_ms = self._scene.clock.monotonic_ms() - ongoing.began_ms
        return took_ms >= ongoing.timeout_ms or self._scene.clock_changes != ongoing.clock_changes

    def _check_era(self, ongoing: Ongoing) -> None:
        """Raises Fenced after a power loss that may have lost coordinators' state."""
        if not self._scene.ledger.transactions.durable and ongoing.era != self._scene.era:
            raise Fenced("power loss")


def errors_of_added(answer: AddPartitionsToTxnResponse) -> list[int]:
    """All partitions are added or none: those that were not attempted have no error of their own."""
    topics = answer.results_by_topic_v3_and_below
    codes = [each.partition_error_code for topic in topics for each in topic.results_by_partition]
    return [code for code in codes if code != ErrorCode.OPERATION_NOT_ATTEMPTED] or codes


def _end_request(session: Session, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=session.owner.name,
        producer_id=session.producer_id,
        producer_epoch=session.epoch,
        committed=commit,
    )


def _end_versions(protocol: int) -> tuple[int, int]:
    is_second = protocol == PROTOCOL_2
    return (FIRST_END_TXN_OF_PROTOCOL_2, 99) if is_second else (0, FIRST_END_TXN_OF_PROTOCOL_2 - 1)
