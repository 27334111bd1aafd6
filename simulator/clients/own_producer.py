"""Quire's own idempotent producer: its records are in the log once, in order and complete, whatever messages are lost.

Only after a power loss may it give up records, because the node may have lost those before them.
"""

from itertools import chain
from typing import NamedTuple

from quire.client.batch import Delivery, Receipt
from quire.client.errors import ClientError
from quire.client.producer import Producer, ProducerConfig
from quire.protocol.errors import ApiError
from quire.protocol.records import Compression
from simulator.checks.superseded import is_compacted, key_for
from simulator.clients.client import Scene
from simulator.clients.own_client import OwnClient
from simulator.ledger import NOTHING_KNOWN, PartitionBook
from simulator.violation import Violation

MOST_RECORDS = 60
MOST_PADDING = 400
FOREVER_MS = 3_600_000.0


class Sent(NamedTuple):
    book: PartitionBook
    value: bytes
    receipt: Receipt


class OwnProducer(OwnClient):
    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene, name)
        self._sessions = 0
        self._session = ""
        self._era = -1
        """The era in which the session began: a later power loss may have lost the node's state of it."""
        self._next_numbers: dict[PartitionBook, int] = {}

    async def run(self) -> None:
        producer: Producer | None = None
        while not self.scene.finishing:
            if producer is None or self.random.chance(0.05):
                producer = self._new_producer()
            book = self.random.choice(self.scene.ledger.live_partitions(that_stay=True))
            try:
                await self.perform(producer.prepare(book.topic.name))
                if book.index not in self.cluster.metadata.topics[book.topic.name].partitions:
                    # In a cluster the node that was asked may not know a new partition yet.
                    await self.perform(self.cluster.refresh([book.topic.name]))
                    await self.back_off()
                    continue
            except (ClientError, ApiError):
                await self.back_off()
                continue
            sent = [self._send(producer, book) for _ in range(1 + self.random.below(MOST_RECORDS))]
            await self.wait(producer.flush())
            if not settle(self, sent, excused=self._era != self.scene.era):
                producer = None
            await self.scene.sleep(self.random.between(0.0, 200.0))
        self.close()

    def _new_producer(self) -> Producer:
        self._sessions += 1
        self._era = self.scene.era
        self._session = f"{self.name}#{self._sessions}"
        self._next_numbers.clear()
        return Producer(self.cluster, producer_config(self))

    def _send(self, producer: Producer, book: PartitionBook) -> Sent:
        number = self._next_numbers.get(book, 0)
        self._next_numbers[book] = number + 1
        return send(self, producer, book, f"{self._session}@{book}", number)


def producer_config(client: OwnClient, **more: object) -> ProducerConfig:
    random = client.random
    return ProducerConfig(
        batch_bytes=random.choice((100, 1000, 4000)),
        linger_ms=random.choice((0, 5)),
        in_flight=random.choice((1, 2, 5)),
        compression=random.choice(list(Compression)),
        delivery_timeout_ms=FOREVER_MS,
        **more,  # type: ignore[arg-type]
    )


def send(client: OwnClient, producer: Producer, book: PartitionBook, session: str, number: int) -> Sent:
    """Sends one record, whose value names its session and number."""
    scene, random = client.scene, client.random
    value = f"{session}:{number}:".encode() + b"x" * random.below(MOST_PADDING)
    timestamp_ms = scene.clock.now_ms() - random.below(50)
    key = key_for(number) if is_compacted(book.topic) else session.encode() if random.chance(0.5) else None
    book.send(value, session, number, idempotent=True, timestamp=timestamp_ms)
    scene.ledger.counts.records_sent += 1
    receipt = producer.send(book.topic.name, value, key=key, partition=book.index, timestamp_ms=timestamp_ms)
    delivery = receipt.delivery
    if receipt.index == 0:
        client.batches[delivery] = []
        flushed_since = book.topic.flushed_since
        delivery.done.when_done(lambda error: acknowledge(client, book, delivery, error, flushed_since))
    client.batches[delivery].append(value)
    return Sent(book, value, receipt)


def acknowledge(
    client: OwnClient, book: PartitionBook, delivery: Delivery, error: Exception | None, flushed_since: int | None
) -> None:
    """Records the outcome of a batch when the producer gets it."""
    values = client.batches.pop(delivery)
    if error is not None:
        # The producer continues after the gap at once, and others may see that before the last record is settled.
        on_their_way = [
            waiting for other, waiting in client.batches.items() if other.topic_partition == delivery.topic_partition
        ]
        for value in chain(values, *on_their_way):
            book.give_up_order(value)
    elif delivery.base_offset >= 0:
        client.scene.checker.acknowledged(
            book,
            client.era_for(book),
            NOTHING_KNOWN,
            delivery.base_offset,
            values,
            first_try=False,
            flushed=flushed_since is not None and flushed_since == book.topic.flushed_since,
        )


def settle(client: OwnClient, sent: list[Sent], *, excused: bool) -> bool:
    """Called when all are delivered or given up. Returns False if some were given up, which must be excused."""
    failure = next((error for each in sent if (error := each.receipt.delivery.error) is not None), None)
    if failure is None:
        return True
    if not excused:
        raise Violation("errors have a cause", f"{client.name} had to give up records: {failure}")
    return False
