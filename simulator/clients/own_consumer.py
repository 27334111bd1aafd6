"""Quire's own consumer: what it hands over is what was asked for, piece after piece, and nothing that is hidden."""

from quire.client.consumer import BEGINNING, Consumer, ConsumerConfig
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
        self._era = -1
        """Since which era at least all of it has come that is here now."""

    async def run(self) -> None:
        consumer = await self._new_consumer()
        while not (self.scene.finishing and self._is_at_the_end()):
            # Not while finishing: whoever begins a long log anew all the time may never come to its end.
            if not self.scene.finishing and self.random.chance(0.01):
                consumer.close()
                consumer = await self._new_consumer()
            try:
                self._poll(consumer)
            except (ClientError, ApiError) as error:
                if not self.excuses and self._era == self.scene.life.era:
                    raise Violation("errors have a cause", f"{self.name} cannot read on: {error}") from error
                consumer = await self._new_consumer()
            longest_ms = 600.0 if self.random.chance(0.1) else POLL_MS
            await self.scene.sleep(self.random.between(0.0, longest_ms))
        consumer.close()
        self.close()

    async def _new_consumer(self) -> Consumer:
        random = self.random
        config = ConsumerConfig(
            read_committed=self._read_committed,
            max_wait_ms=random.choice((10, 500)),
            max_bytes=random.choice((1 + random.below(1000), 20_000, 1 << 20)),
            partition_max_bytes=random.choice((1 + random.below(600), 4000, 1 << 20)),
            prefetch_bytes=random.choice((1, 10_000, 1 << 20)),
            reset=BEGINNING,
        )
        self._books = {
            TopicPartition(book.topic.name, book.index): book
            for book in self.scene.ledger.live_partitions(that_stay=True)
        }
        while True:
            self._era = self.scene.life.era
            consumer = Consumer(self.cluster, config, self._moved)
            try:
                await self.perform(consumer.assign(dict.fromkeys(self._books, BEGINNING)))
            except (ClientError, ApiError):
                await self.back_off()
                continue
            self._expected = dict(consumer.positions)
            return consumer

    def _moved(self, place: TopicPartition, offset: int) -> None:
        self._expected[place] = offset

    def _is_at_the_end(self) -> bool:
        return all(
            self._expected[place] >= (book.stable_offset if self._read_committed else book.end_offset)
            for place, book in self._books.items()
        )

    def _poll(self, consumer: Consumer) -> None:
        era = self.network.era
        pieces = consumer.poll()
        for piece in pieces:
            self._take(piece)
        if not pieces:
            self._era = era

    def _take(self, piece: Fetched) -> None:
        expected = self._expected[piece.place]
        if piece.from_offset != expected:
            raise Violation(
                "a consumer reads on where it was",
                f"{self.name} was given {piece.place} from {piece.from_offset}, and {expected} was next",
            )
        self._expected[piece.place] = piece.next_offset
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
        records = self.scene.checker.fetched(
            self._books[piece.place],
            self._era,
            NOTHING_KNOWN,
            piece.from_offset,
            answer,
            committed_only=self._read_committed,
        )
        shown = [(record.offset, record.value) for record in piece.records()]
        if records is not None and self._read_committed:
            due = [(record.offset, record.value) for record in records]
            if shown != due:
                raise Violation("a consumer shows what there is", f"{self.name}: {piece.place} has {due}, not {shown}")
