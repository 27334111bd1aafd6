"""Transactions on a simulated node: producers that have begun one, and what read_committed readers see."""

from collections.abc import Callable

import pytest

from quire.coordinators.runtime.channel import Channel
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quire.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from quire.protocol.records.batch import walk_batches
from quire.protocol.schema import Message
from tests.node.conftest import SimulatedNode
from tests.node.transactional_producer import PROTOCOL_1, PROTOCOL_2, TOPIC, TransactionalProducer

BOTH = pytest.mark.parametrize("protocol", [PROTOCOL_1, PROTOCOL_2])


class MarkerlessChannel:
    """Holds back requests for markers until they are released."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.held: list[Callable[[], None]] | None = []

    def send(self, node_id: int, request: Message, version: int) -> Pending[Message | ApiError]:
        if self.held is None or not isinstance(request, WriteTxnMarkersRequest):
            return self._channel.send(node_id, request, version)
        answer: Pending[Message | ApiError] = Pending()
        self.held.append(lambda: self._channel.send(node_id, request, version).when_done(answer.complete))
        return answer

    def let_go(self) -> None:
        held, self.held = self.held or [], None
        for go in held:
            go()


def transactional_node() -> SimulatedNode:
    node = SimulatedNode(settings={"transaction.state.log.num.partitions": "2"}).start()
    node.create_topic(TOPIC, 3)
    return node


def begun(node: SimulatedNode, protocol: int, *indexes: int, name: str = "mover") -> TransactionalProducer:
    """A producer whose transaction may write to these partitions."""
    producer = TransactionalProducer(node, name, protocol).start()
    if protocol == PROTOCOL_1:
        assert set(producer.add_partitions(*indexes)) == {0}
    return producer


def committed(node: SimulatedNode, index: int = 0) -> tuple[list[int], int]:
    """The batches of a partition that a read_committed consumer sees, and the end that it sees."""
    wanted = FetchPartition(partition=index, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=0, isolation_level=1, topics=[FetchTopic(topic=TOPIC, partitions=[wanted])])
    (data,) = node.call(request, 12, FetchResponse).responses[0].partitions
    assert isinstance(data.records, memoryview)
    begins = {(each.producer_id, each.first_offset): None for each in data.aborted_transactions or []}
    aborting: dict[int, None] = {}
    seen = []
    for header in walk_batches(data.records):
        if (header.producer_id, header.base_offset) in begins:
            aborting[header.producer_id] = None
        if header.is_control:
            aborting.pop(header.producer_id, None)
        elif header.producer_id not in aborting:
            seen.append(header.base_offset)
    return seen, data.last_stable_offset
