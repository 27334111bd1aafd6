"""Quire's own transactional producer, with either protocol: it commits, aborts, leaves transactions open, is replaced.

What it reports must be true: after an acknowledged commit the whole transaction is there; if a record failed or an
abort was requested, nothing is.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from quire.client.cluster import Cluster
from quire.client.errors import ClientError
from quire.client.group_offsets import OffsetAndMetadata
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer
from quire.client.transaction_requests import TRANSACTION_VERSION
from quire.protocol.errors import ApiError, ErrorCode
from quire.steps import Steps, perform
from simulator.clients.client import Scene
from simulator.clients.own_client import POLL_MS, OwnClient, PowerLost
from simulator.clients.own_producer import Sent, producer_config, send, settle
from simulator.ledger import PartitionBook
from simulator.transaction_ledger import Session, TransactionalIdBook, TransactionBook
from simulator.violation import Violation

T = TypeVar("T")

MOST_WRITES = 4
MOST_RECORDS = 12
COMMIT_CHANCE = 0.65
LEAVE_CHANCE = 0.05
PAUSE_CHANCE = 0.03
OFFSETS_CHANCE = 0.3


class OwnTransactionalProducer(OwnClient):
    def __init__(
        self, scene: Scene, name: str, transactional_id: str, protocol: int, groups: Sequence[str], *, abandons: bool
    ) -> None:
        """It commits offsets for `groups`; at the end it finishes a last transaction, or `abandons` it."""
        self._protocol = protocol
        super().__init__(scene, name)
        self._transactional_id = transactional_id
        self._groups = groups
        self._abandons = abandons
        self._timeout_ms = self.random.choice((1500, 5000, 15_000))
        self._producer: Producer | None = None
        self._session: Session | None = None
        self._era = -1
        self._began_ms = 0.0
        self._began_starts = 0
        self._clock_changes = 0

    def new_cluster(self) -> Cluster:
        cluster = super().new_cluster()
        if self._protocol == 1:
            finalized = cluster.feature_level

            def older(name: str) -> int:
                return min(1, finalized(name)) if name == TRANSACTION_VERSION else finalized(name)

            cluster.feature_level = older  # type: ignore[method-assign]
        return cluster

    async def run(self) -> None:
        while not self.scene.finishing:
            try:
                await self._work()
            except (ApiError, PowerLost):
                self._leave()
                await self.scene.sleep(self.random.between(0.0, 500.0))
        while not await self._finish():
            self._leave()
            await self.scene.sleep(self.random.between(0.0, 3000.0))
        self.close()

    async def _work(self) -> None:
        transaction = await self._begin()
        sent: list[Sent] = []
        for _ in range(self.random.below(MOST_WRITES + 1)):
            sent += self._write(transaction)
            if self.random.chance(OFFSETS_CHANCE):
                await self._commit_offsets(transaction)
            await self.scene.sleep(self.random.between(0.0, 20.0))
            if self.random.chance(PAUSE_CHANCE):
                await self.scene.sleep(self._timeout_ms * self.random.between(0.5, 1.5))
        if self.random.chance(LEAVE_CHANCE):
            raise PowerLost("simulated: the producer leaves without ending its transaction")
        await self._end(transaction, sent, commit=self.random.chance(COMMIT_CHANCE))
        await self.scene.sleep(self.random.between(0.0, 50.0))

    async def _finish(self) -> bool:
        """Completes a last transaction, which only another producer of the same id may prevent."""
        try:
            transaction = await self._begin()
            sent = self._write(transaction)
            if self._abandons:
                await self._unless_the_power_goes(_flush(self._live()))
            else:
                await self._end(transaction, sent, commit=True)
            return transaction.committed_tick is not None or self._abandons
        except (ApiError, PowerLost):
            return False

    # --- A session

    def _live(self) -> Producer:
        assert self._producer is not None
        return self._producer

    def _leave(self) -> None:
        """Leaves without closing its session; requests in flight may still arrive."""
        if self._producer is not None:
            self._producer.close()
        self._producer = self._session = None
        self.cluster.close()
        self.cluster = self.new_cluster()

    def _id_book(self) -> TransactionalIdBook:
        ledger = self.scene.ledger.transactions
        name = self._transactional_id if ledger.durable else f"{self._transactional_id}@{self.scene.era}"
        return ledger.id_named(name)

    async def _begin(self) -> TransactionBook:
        if self._producer is None or self.random.chance(0.1):
            if self._producer is not None:
                self._leave()
            await self._begin_session()
        assert self._session is not None
        producer = self._live()
        for topic in dict.fromkeys(book.topic.name for book in self._books()):
            await self._repeat_until_answered(partial(producer.prepare, topic))
        self._began_ms = self.scene.clock.monotonic_ms()
        self._began_starts = self.scene.starts
        self._clock_changes = self.scene.clock_changes
        producer.begin()
        return self.scene.ledger.transactions.begin(self._session)

    async def _begin_session(self) -> None:
        await self.scene.gates_passed()
        self._era = self.scene.era
        book = self._id_book()
        config = producer_config(self, transactional_id=book.name, transaction_timeout_ms=self._timeout_ms)
        producer = Producer(self.cluster, config)
        init = book.asking(self.scene.ledger.ticks.next())
        doubts = self.network.connections
        await self._repeat_until_answered(producer.init_transactions)
        if self.network.connections - doubts <= 1:  # no request of it can still be in flight
            init.settled_tick = self.scene.ledger.ticks.next()
        identity = producer.identity
        assert identity is not None
        self._session = book.given(self.name, (identity.producer_id, identity.epoch), init)
        self.scene.checker.producer_id(identity.producer_id, book.name)
        self.scene.ledger.counts.sessions += 1
        self._producer = producer

    async def _repeat_until_answered(self, operation: Callable[[], Steps[T]]) -> T:
        """Retries until it is done: the node may be down for longer than the client waits for an answer."""
        while True:
            try:
                return await self._unless_the_power_goes(operation())
            except ClientError:
                await self.back_off()

    async def _unless_the_power_goes(self, steps: Steps[T]) -> T:
        """Raises PowerLost after a power loss that may lose coordinators' state."""
        done = perform(steps)
        while not done.done:
            if not self.scene.ledger.transactions.durable and self._era != self.scene.era:
                steps.close()
                raise PowerLost
            await self.scene.sleep(POLL_MS)
        if isinstance(done.value, Exception):
            raise done.value
        return done.value

    # --- A transaction

    def _books(self) -> list[PartitionBook]:
        return [book for book in self.scene.ledger.live_partitions() if book.topic.transactional]

    def _write(self, transaction: TransactionBook) -> list[Sent]:
        sent = []
        producer, topics = self._live(), self.cluster.metadata.topics
        books = [book for book in self._books() if book.index in topics[book.topic.name].partitions]
        for _ in range(1 + self.random.below(MOST_RECORDS)):
            book = self.random.choice(books)
            number = len(transaction.values.get(book, []))
            try:
                each = send(self, producer, book, f"{transaction}@{book}", number)
            except ApiError:
                break  # the transaction has failed; the commit will report it again
            self.scene.ledger.transactions.sent(transaction, book, [each.value])
            sent.append(each)
        return sent

    async def _commit_offsets(self, transaction: TransactionBook) -> None:
        books = self.scene.ledger.live_partitions(that_stay=True)
        chosen = {self.random.below(len(books)) for _ in range(1 + self.random.below(2))}
        group = self.scene.group_name(self.random.choice(self._groups))
        ledger = self.scene.offsets
        attempts = {
            books[slot]: ledger.attempt(group, books[slot], self.random.below(1000), transaction)
            for slot in sorted(chosen)
        }
        offsets = {
            TopicPartition(book.topic.name, book.index): OffsetAndMetadata(attempt.offset, attempt.tag)
            for book, attempt in attempts.items()
        }
        connections = self.network.connections
        try:
            await self._unless_the_power_goes(self._live().send_offsets(group, offsets))
        except ApiError as error:
            self._check_excuse(transaction.session, error)
            raise
        for attempt in attempts.values():
            ledger.acknowledged(attempt, copies_left=connections != self.network.connections)

    async def _end(self, transaction: TransactionBook, sent: list[Sent], *, commit: bool) -> None:
        assert self._session is not None
        producer, session = self._live(), self._session
        was_superseded = session.superseded
        transaction.commit_asked = commit
        try:
            await self._unless_the_power_goes(producer.commit() if commit else producer.abort())
        except (ApiError, ClientError) as error:
            failed = any(each.receipt.delivery.error is not None for each in sent)
            if failed or _ended_otherwise(error):
                transaction.commit_asked = False  # it was never sent, or never carried out
            self._check_excuse(session, error)
            settle(self, sent, excused=True)
            raise ApiError(ErrorCode.PRODUCER_FENCED) from error
        settle(self, sent, excused=not commit)
        if transaction.commits or any(each.receipt.delivered for each in sent):
            # Otherwise nothing was sent before the abort, and the coordinator got no request.
            self.scene.checker.transactions.let_in(session, was_superseded, "the end of a transaction")
        self._ended(transaction, commit)
        identity = producer.identity
        assert identity is not None
        if identity != session.identity:
            session.owner.moved_on(session, (identity.producer_id, identity.epoch))

    def _check_excuse(self, session: Session, error: Exception) -> None:
        """A producer may be fenced by another one, or by the coordinator after its timeout, and for little else.

        With protocol 1 it requests the next epoch itself. If the response is lost, it retries with the epoch before,
        which is not in the log: a restarted coordinator cannot know it.
        """
        took_ms = self.scene.clock.monotonic_ms() - self._began_ms
        late = took_ms >= self._timeout_ms or self.scene.clock_changes != self._clock_changes
        era_changed = self._era != self.scene.era
        forgotten = self._protocol == 1 and self._began_starts != self.scene.starts
        if not (session.may_be_fenced or late or era_changed or forgotten):
            raise Violation("errors have a cause", f"{self.name} could not end its transaction: {error!r}")

    def _ended(self, transaction: TransactionBook, commit: bool) -> None:
        ledger = self.scene.ledger
        if not commit:
            ledger.counts.transactions_aborted += 1
            return
        if transaction.trace is False and not transaction.suspended:
            raise Violation("an acknowledged commit holds", f"{transaction} is aborted {transaction.trace_text}")
        transaction.committed_tick = ledger.ticks.next()
        ledger.counts.transactions_committed += 1


def _ended_otherwise(error: Exception) -> bool:
    """Whether the transaction was not committed. After other errors it may be: a coordinator that loses its leadership
    answers NOT_COORDINATOR to a commit that it has written already, and another producer may replace this one then."""
    return isinstance(error, ApiError) and error.code is ErrorCode.INVALID_TXN_STATE


def _flush(producer: Producer) -> Steps[None]:
    yield producer.flush()
