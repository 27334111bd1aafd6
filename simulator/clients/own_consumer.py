"""Quire's own consumer: it returns the records that were requested, in order, and no hidden ones."""

from collections.abc import Mapping

from quire.client.consumer import BEGINNING, Consumer, ConsumerConfig, Start
from quire.client.errors import ClientError
from quire.client.fetched import Fetched
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError
from quire.protocol.messages.fetch import AbortedTransaction, PartitionData
from simulator.clients.client import Scene
from simulator.clients.own_client import POLL_MS, OwnClient
from simulator.ledger import NOTHING_KNOWN, PartitionBook
from simulator.violation import Violation


class OwnConsumer(OwnClient):
    def __init__(self, scene: Scene, name: str, *, read_committed: bool) -> None:
        super().__init__(scene, name)
        self._read_committed = read_committed
        self._books: dict[TopicPartition, PartitionBook] = {}
        self._expected: dict[TopicPartition, int] = {}
        self._eras: dict[str, int] = {}
        """Everything that it has now of each node is from this era or a later one."""
        self._era = -1

    async def run(self) -> None:
        consumer = await self._new_consumer()
        hurries = False
        while not (self.scene.finishing and self._is_at_the_end()):
            if self.scene.finishing and not hurries:
                hurries = True
                consumer.close()
                consumer = await self._new_consumer(self._expected)
            # Not while finishing: a consumer that keeps restarting may never reach the end of a long log.
            if not self.scene.finishing and self.random.chance(0.01):
                consumer.close()
                consumer = await self._new_consumer()
            try:
                self._poll(consumer)
            except (ClientError, ApiError) as error:
                if not self.excuses and self._era == self.scene.era:
                    raise Violation("errors have a cause", f"{self.name} cannot continue: {error}") from error
                consumer = await self._new_consumer()
            longest_ms = 600.0 if self.random.chance(0.1) and not self.scene.finishing else POLL_MS
            await self.scene.sleep(self.random.between(0.0, longest_ms))
        consumer.close()
        self.close()

    async def _new_consumer(self, offsets: Mapping[TopicPartition, int] | None = None) -> Consumer:
        """It continues at these offsets, or begins at the start; at the end of the run it reads as much as it can."""
        random, hurries = self.random, self.scene.finishing
        starts = {each: Start(offset=offset) for each, offset in (offsets or {}).items()}
        config = ConsumerConfig(
            read_committed=self._read_committed,
            max_wait_ms=random.choice((50, 500)),
            max_bytes=1 << 20 if hurries else random.choice((1 + random.below(1000), 20_000, 1 << 20)),
            partition_max_bytes=1 << 20 if hurries else random.choice((1 + random.below(600), 4000, 1 << 20)),
            prefetch_bytes=1 << 20 if hurries else random.choice((1, 10_000, 1 << 20)),
            reset=BEGINNING,
        )
        self._books = {
            TopicPartition(book.topic.name, book.index): book
            for book in self.scene.ledger.live_partitions(that_stay=True)
        }
        while True:
            self._era = self.scene.era
            self._eras = dict.fromkeys(self.scene.nodes, self._era)
            consumer = Consumer(self.cluster, config, self._moved)
            try:
                await self.perform(consumer.assign({each: starts.get(each, BEGINNING) for each in self._books}))
            except (ClientError, ApiError):
                await self.back_off()
                continue
            self._expected = dict(consumer.positions)
            return consumer

    def _moved(self, partition: TopicPartition, offset: int) -> None:
        self._expected[partition] = offset

    def _is_at_the_end(self) -> bool:
        return all(
            self._expected[partition] >= (book.stable_offset if self._read_committed else book.end_offset)
            for partition, book in self._books.items()
        )

    def _poll(self, consumer: Consumer) -> None:
        eras = dict(self.network.eras)
        pieces = consumer.poll()
        for piece in pieces:
            self._take(piece)
        if not pieces:
            self._eras = eras
            self._era = min(eras.values(), default=0)

    def _take(self, piece: Fetched) -> None:
        expected = self._expected[piece.topic_partition]
        if piece.from_offset != expected:
            raise Violation(
                "a consumer continues at its position",
                f"{self.name} got {piece.topic_partition} from {piece.from_offset}, but {expected} was next",
            )
        self._expected[piece.topic_partition] = piece.next_offset
        book = self._books[piece.topic_partition]
        answer = PartitionData(
            high_watermark=piece.high_watermark,
            last_stable_offset=piece.next_offset,
            log_start_offset=-1,
            aborted_transactions=[
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in piece.aborted
            ],
            records=piece.batches,
        )
        found = self.scene.checker.fetches.check(
            book,
            self.era_for(book, self._eras),
            NOTHING_KNOWN,
            piece.from_offset,
            answer,
            committed_only=self._read_committed,
        )
        shown = [(record.offset, record.value) for record in piece.records()]
        if found is not None and self._read_committed:
            due = [(record.offset, record.value) for record in found.records]
            if shown != due:
                raise Violation(
                    "a consumer returns what is visible", f"{self.name}: {piece.topic_partition} has {due}, not {shown}"
                )
