"""A producer with a transactional id: transactions over several partitions, some with a group's offsets in them.

It commits and aborts at random, crashes in the middle and restarts under its id, or exceeds its transaction timeout.
Several may share an id: a producer that was replaced continues until it is refused, and takes over again later.

With protocol 1 it sometimes gives the sequence numbers of a transaction that it aborted to the next one, as librdkafka
does with batches that it gave up. These are new records: a node must refuse them, or write them.
"""

from collections.abc import Sequence

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.init_producer_id import InitProducerIdRequest
from simulator.clients.batches import Batch, BatchMaker
from simulator.clients.client import Scene, SimClient
from simulator.clients.coordinator import NOT_NOW, TRANSACTION, find_coordinator
from simulator.clients.routes import transaction
from simulator.clients.transaction_requests import FENCED, PROTOCOL_2, Fenced, Ongoing, TransactionRequests
from simulator.clients.wire import Lost
from simulator.ledger import PartitionBook
from simulator.transaction_ledger import Session, TransactionalIdBook

MOST_WRITES = 4
MOST_PARTITIONS = 3
COMMIT_CHANCE = 0.65
CRASH_CHANCE = 0.05
PAUSE_CHANCE = 0.03
OFFSETS_CHANCE = 0.3
NEW_SESSION_CHANCE = 0.1
REUSE_CHANCE = 0.3
FIRST_INIT_WITH_IDENTITY = 3
NEWEST_INIT = 5
"""Version 6 is for two-phase commits."""


class Crash(Exception):  # noqa: N818
    """The producer crashes, and its next request is not sent."""


class TransactionalProducer(SimClient):
    def __init__(
        self, scene: Scene, name: str, transactional_id: str, protocol: int, groups: Sequence[str], *, abandons: bool
    ) -> None:
        """It commits offsets for `groups`; at the end it finishes a last transaction, or `abandons` it."""
        super().__init__(scene, name)
        self._transactional_id = transactional_id
        self._protocol = protocol
        self._groups = groups
        self._abandons = abandons
        self._maker = BatchMaker(scene, self.random)
        self._requests = TransactionRequests(self)
        self._timeout_ms = self.random.choice((1500, 5000, 15_000))
        self._session: Session | None = None
        self._era = -1
        self._next_numbers: dict[PartitionBook, int] = {}
        self._first_batches: dict[PartitionBook, tuple[int, int]] = {}
        """The first number and the size of the ongoing transaction's first batch for each partition."""
        self._reused: dict[PartitionBook, int] = {}
        """Where sequence numbers of an aborted transaction are used again, with the size of its first batch."""
        self._reuses = 0

    async def run(self) -> None:
        while not self.scene.finishing:
            try:
                await self._work()
            except Fenced:
                self._session = None
                await self.scene.sleep(self.random.between(0.0, 500.0))
            except Crash:
                self._crash()
                await self.scene.sleep(self.random.between(0.0, 300.0))
        await self._finish()
        self.close()

    async def _work(self) -> None:
        session = await self._live_session()
        ongoing = self._begin(session)
        for _ in range(self.random.below(MOST_WRITES + 1)):
            await self._write(ongoing)
            if self.random.chance(OFFSETS_CHANCE):
                await self._commit_offsets(ongoing)
            await self.scene.sleep(self.random.between(0.0, 20.0))
            if self.random.chance(PAUSE_CHANCE):
                await self.scene.sleep(self._timeout_ms * self.random.between(0.5, 1.5))
            if self.random.chance(CRASH_CHANCE):
                raise Crash
        if not ongoing.book.values and not ongoing.book.commits:
            return  # the transaction has not begun: there is nothing to end
        commit = self.random.chance(COMMIT_CHANCE)
        if self.random.chance(CRASH_CHANCE):
            await self._requests.end_unheard(ongoing, commit=commit, patience_ms=self.random.between(0.0, 20.0))
            raise Crash
        await self._end(ongoing, commit=commit)
        await self.scene.sleep(self.random.between(0.0, 50.0))

    async def _finish(self) -> None:
        """Completes a last transaction, which only another producer of the same id may prevent."""
        while True:
            try:
                ongoing = self._begin(await self._live_session())
                await self._write(ongoing)
                if not self._abandons:
                    await self._end(ongoing, commit=True)
                return
            except Fenced:
                self._session = None
                await self.scene.sleep(self.random.between(0.0, 3000.0))

    def _crash(self) -> None:
        self._session = None
        self.hang_up()

    # --- A session

    def _id_book(self) -> TransactionalIdBook:
        """Uses a new transactional id after a power loss that may have lost coordinators' state."""
        ledger = self.scene.ledger.transactions
        name = self._transactional_id if ledger.durable else f"{self._transactional_id}@{self.scene.era}"
        return ledger.id_named(name)

    async def _live_session(self) -> Session:
        if self._session is not None and self._era != self.scene.era:
            self._session = self._session if self.scene.ledger.transactions.durable else None
        if self._session is None or self.random.chance(NEW_SESSION_CHANCE):
            await find_coordinator(self, TRANSACTION, self._transactional_id)
            await self._begin_session()
        assert self._session is not None
        return self._session

    async def _begin_session(self) -> None:
        """Keeps its identity if it has one, which must then be the latest of its id; otherwise it is refused."""
        old = self._session
        oldest = 0 if old is None else FIRST_INIT_WITH_IDENTITY
        while True:
            await self.connected(transaction(self._id_book().name))
            book, era = self._id_book(), self.scene.era
            if old is not None and old.owner is not book:
                raise Fenced("power loss")
            init = book.asking(self.scene.ledger.ticks.next())
            was_superseded = old is not None and old.superseded
            request = InitProducerIdRequest(transactional_id=book.name, transaction_timeout_ms=self._timeout_ms)
            if old is not None:
                request.producer_id, request.producer_epoch = old.identity
            try:
                answer = await self.ask(request, transaction(book.name), at_least=oldest, at_most=NEWEST_INIT)
            except Lost:
                await self.back_off()
                continue
            fenced = FENCED if old is not None and old.may_be_fenced else ()
            allowed = (*NOT_NOW, ErrorCode.CONCURRENT_TRANSACTIONS, *fenced, *self.excuses)
            error = self.expect(answer.error_code, "InitProducerId", *allowed)
            if not self.sent_twice and error not in NOT_NOW:
                init.settled_tick = self.scene.ledger.ticks.next()
            if error in FENCED:
                raise Fenced(error.name)
            if error is ErrorCode.NONE:
                break
            await self.back_off()
        if old is not None:
            self.scene.checker.transactions.let_in(old, was_superseded, "InitProducerId")
        self._session = book.given(self.name, (answer.producer_id, answer.producer_epoch), init)
        self.scene.checker.producer_id(answer.producer_id, book.name)
        self.scene.ledger.counts.sessions += 1
        self._era = era
        self._next_numbers.clear()
        self._reused.clear()

    # --- A transaction

    def _begin(self, session: Session) -> Ongoing:
        self._first_batches.clear()
        return Ongoing(
            self.scene.ledger.transactions.begin(session),
            self._protocol,
            self._era,
            self._timeout_ms,
            self.scene.clock.monotonic_ms(),
            self.scene.clock_changes,
        )

    async def _write(self, ongoing: Ongoing) -> None:
        books = self._choose([book for book in self.scene.ledger.live_partitions() if book.topic.transactional])
        await self._requests.add_partitions(ongoing, books)
        batches = [self._make(ongoing.session, book) for book in books]
        await self._requests.write(ongoing, batches, self._reused)

    def _choose(self, partitions: list[PartitionBook]) -> list[PartitionBook]:
        chosen = {self.random.below(len(partitions)) for _ in range(1 + self.random.below(MOST_PARTITIONS))}
        return [partitions[slot] for slot in sorted(chosen)]

    def _make(self, session: Session, book: PartitionBook) -> Batch:
        number = self._next_numbers.get(book, 0)
        batch = self._maker.make(
            book,
            f"{session.producer_id}.{session.epoch}~{self._reuses}@{book}",
            number,
            producer_id=session.producer_id,
            epoch=session.epoch,
            sequence=number,
            transactional=True,
            count=self._reused.get(book) if book not in self._first_batches else None,
        )
        self._first_batches.setdefault(book, (number, len(batch.values)))
        self._next_numbers[book] = number + len(batch.values)
        return batch

    async def _commit_offsets(self, ongoing: Ongoing) -> None:
        books = self.scene.ledger.live_partitions(that_stay=True)
        chosen = {self.random.below(len(books)) for _ in range(1 + self.random.below(2))}
        offsets = {books[slot]: self.random.below(1000) for slot in sorted(chosen)}
        group = self.scene.group_name(self.random.choice(self._groups))
        await self._requests.commit_offsets(ongoing, group, offsets)

    async def _end(self, ongoing: Ongoing, *, commit: bool) -> None:
        await self._requests.end(ongoing, commit=commit)
        if self._protocol == PROTOCOL_2:
            self._next_numbers.clear()
        elif ongoing.in_doubt:
            # A late copy of a request could join the next transaction, so that one gets a new epoch.
            await self._begin_session()
        elif not commit and self.random.chance(REUSE_CHANCE):
            self._reuse_numbers()

    def _reuse_numbers(self) -> None:
        self._reuses += 1
        for book, (number, size) in self._first_batches.items():
            self._next_numbers[book] = number
            self._reused[book] = size
