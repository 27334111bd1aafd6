"""When the batch of a simulated idempotent producer may be refused."""

from types import SimpleNamespace
from typing import cast

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from simulator.clients.idempotent_producer import IdempotentProducer
from simulator.clients.wire import Wire
from simulator.ledger import TopicBook
from simulator.main import Kind
from simulator.tasks import Promise
from simulator.world import World
from tests.simulator.expected_violation import expect

TOPIC_ID = bytes(16)
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def refused_by(node: str) -> ErrorCode:
    """The outcome of a batch: node-1 was deposed and does not know it, node-2 leads, and is deposed meanwhile."""
    scene = World(1, Kind(clusters=True).plan(1), cast=lambda _: []).scene
    producer = IdempotentProducer(scene, "producer")
    producer._producer_id = producer._era = 0
    book = TopicBook("t", TOPIC_ID, 1, stays=True, replication_factor=2).partitions[0]
    book.leadership.believes("node-1", 3, "node-1")
    book.leadership.believes("node-2", 4, "node-2")
    batch = producer._make(book)
    batch.sending(cast(Wire, SimpleNamespace(node=node, era=0)), 1)
    book.leadership.believes("node-3", 5, "node-3")
    partition = PartitionProduceResponse(index=0, error_code=OUT_OF_ORDER)
    answer: Promise[ProduceResponse] = Promise()
    answer.keep(ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[partition])]))
    batch.answers = [answer]
    with pytest.raises(StopIteration) as ended:
        producer._outcome(batch).send(None)
    return cast(ErrorCode, ended.value.value)


def test_a_leader_that_was_deposed_lacks_what_the_next_one_has_acknowledged() -> None:
    assert refused_by("node-1") is OUT_OF_ORDER


@pytest.mark.parametrize("node", ["node-2", "node-3"])
def test_a_node_that_was_no_deposed_leader_when_it_was_asked_has_everything(node: str) -> None:
    with expect("errors have a cause"):
        refused_by(node)
