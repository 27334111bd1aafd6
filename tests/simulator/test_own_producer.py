"""Quire's own producer in the simulation: what the ledger expects of records that the producer gave up."""

from typing import cast

import pytest

from quire.client.batch import Delivery, Receipt
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer
from quire.protocol.records import Record
from simulator.clients.own_client import OwnClient
from simulator.clients.own_producer import send
from simulator.ledger import PartitionBook, TopicBook
from simulator.violation import Violation
from simulator.world import World

REFUSED = Exception("sequence 1 where 0 is next")


class OneByOne:
    """Stands for a producer: every record is a separate batch, and the test decides its outcome."""

    def __init__(self) -> None:
        self.world = World(0, cast=lambda _: [])
        self.client = OwnClient(self.world.scene, "own")
        self.books = TopicBook("t", bytes(16), 2, stays=True).partitions
        self._numbers = dict.fromkeys(self.books, 0)

    def send(self, topic: str, value: bytes, *, partition: int, **_: object) -> Receipt:
        return Receipt(Delivery(TopicPartition(topic, partition)), 0)

    def put_in_line(self, book: PartitionBook) -> tuple[Delivery, bytes]:
        number = self._numbers[book]
        self._numbers[book] = number + 1
        sent = send(self.client, cast(Producer, self), book, f"own#1@{book}", number)
        return sent.receipt.delivery, sent.value

    def look(self, book: PartitionBook, *values: bytes) -> None:
        records = [Record(offset, 0, None, value) for offset, value in enumerate(values)]
        self.world.scene.checker.whole_logs.check(book, records)


def test_a_reader_sees_nothing_wrong_while_a_producer_continues_after_a_batch_that_it_gave_up() -> None:
    producer = OneByOne()
    book = producer.books[0]
    (first, a), (refused, _), (_, c), (_, d) = [producer.put_in_line(book) for _ in range(4)]
    first.done.complete(None)
    refused.done.complete(REFUSED)
    producer.look(book, a, c, d)
    with pytest.raises(Violation, match="as often as it was sent"):
        producer.look(book, a, c, c)


def test_a_gap_is_found_before_what_was_given_up_and_in_other_partitions() -> None:
    producer = OneByOne()
    here, there = producer.books
    (first, a), (second, _), (third, c), (refused, _) = [producer.put_in_line(here) for _ in range(4)]
    (_, x), _, (_, z) = [producer.put_in_line(there) for _ in range(3)]
    for delivered in (first, second, third):
        delivered.done.complete(None)
    refused.done.complete(REFUSED)
    for book, values in ((here, (a, c)), (there, (x, z))):
        with pytest.raises(Violation, match="in send order, without a gap"):
            producer.look(book, *values)
