"""A partition asks the coordinator before the first write of a transaction (KIP-890).

So neither a late nor a forged write begins a transaction that no coordinator ends.
"""

from collections.abc import Callable

import pytest

from quire.coordinators.runtime.channel import Channel
from quire.network.server import Server
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.schema import Message
from tests.network.memory import MemoryNetwork, frame
from tests.node.conftest import SimulatedNode
from tests.node.open_transactions import BOTH, MarkerlessChannel, begun, committed, transactional_node
from tests.node.transactional_producer import PROTOCOL_1, PROTOCOL_2, TOPIC


class HeldChannel:
    """Holds back a request, or only its answer, until it is released."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.held: list[Callable[[], None]] = []

    def send(self, node_id: int, request: Message, version: int) -> Pending[Message | ApiError]:
        answer: Pending[Message | ApiError] = Pending()
        outcome = self.channel.send(node_id, request, version)
        self.held.append(lambda: outcome.when_done(answer.complete))
        return answer

    def let_go(self) -> None:
        held, self.held = self.held, []
        for go in held:
            go()


@pytest.fixture
def node() -> SimulatedNode:
    return transactional_node()


def test_a_write_to_a_partition_that_was_not_added_is_refused(node: SimulatedNode) -> None:
    producer = begun(node, PROTOCOL_1, 0)
    assert producer.produce(1) == [ErrorCode.TRANSACTION_ABORTABLE]
    assert committed(node, 1) == ([], 0)


@BOTH
def test_a_write_that_comes_after_its_transactions_end_opens_nothing(node: SimulatedNode, protocol: int) -> None:
    producer = begun(node, protocol, 0)
    producer.produce(0)
    late = producer.request(0)
    producer.end(commit=True)
    answer = node.send(late, producer.produce_version)
    node.clock.run_until(lambda: answer.done)
    assert committed(node) == ([0], 2), "no transaction was opened that would never end"


def test_a_write_accepted_while_its_transaction_ends_opens_nothing(node: SimulatedNode) -> None:
    """The coordinator confirmed, and then the transaction ended before the records were appended."""
    producer = begun(node, PROTOCOL_1, 0, 1)
    producer.produce(1)
    channel = HeldChannel(node.node.channel)
    node.node.channel = channel
    waiting = node.send(producer.request(0), producer.produce_version)
    node.node.channel = channel.channel
    assert producer.end(commit=True) == 0
    channel.let_go()
    node.clock.run_until(lambda: waiting.done)
    assert committed(node) == ([], 1), "only the marker is there"


def test_a_replaced_producer_that_asks_in_vain_does_not_block_its_successor(node: SimulatedNode) -> None:
    old = begun(node, PROTOCOL_2)
    new = begun(node, PROTOCOL_2)
    channel = HeldChannel(node.node.channel)
    node.node.channel = channel
    waiting = node.send(new.request(0), new.produce_version)
    node.node.channel = channel.channel
    assert old.produce(0) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    channel.let_go()
    node.clock.run_until(lambda: waiting.done)
    assert new.end(commit=True) == 0
    assert committed(node) == ([0], 2)


def test_a_write_during_the_end_of_the_last_transaction_is_accepted_afterwards(node: SimulatedNode) -> None:
    markers = node.node.channel = MarkerlessChannel(node.node.channel)
    producer = begun(node, PROTOCOL_2)
    producer.produce(0)
    assert producer.end(commit=True) == 0
    waiting = node.send(producer.request(0), producer.produce_version)
    assert not waiting.done, "the coordinator has no marker yet"
    markers.let_go()
    node.clock.run_until(lambda: waiting.done)
    assert producer.end(commit=True) == 0
    assert committed(node) == ([0, 2], 4)


def test_a_producer_of_protocol_1_gets_an_error_of_its_version_while_its_transaction_is_being_ended(
    node: SimulatedNode,
) -> None:
    node.node.channel = MarkerlessChannel(node.node.channel)
    producer = begun(node, PROTOCOL_1, 0, 1)
    producer.produce(0)
    assert producer.end(commit=True) == 0
    assert producer.produce(1) == [ErrorCode.NOT_ENOUGH_REPLICAS], "what every producer tries again"


def test_a_coordinator_that_does_not_answer_is_not_waited_for_forever(node: SimulatedNode) -> None:
    producer = begun(node, PROTOCOL_2)
    channel = HeldChannel(node.node.channel)
    node.node.channel = channel
    waiting = node.send(producer.request(0), producer.produce_version)
    node.clock.run_for(29_000)
    assert not waiting.done
    node.clock.run_for(2_000)
    assert waiting.done
    channel.let_go()
    assert node.node.partitions.leader(TOPIC, None, 0).log.end_offset == 0


@BOTH
def test_a_later_request_of_a_disconnected_client_is_not_written_before_an_earlier_one(
    node: SimulatedNode, protocol: int
) -> None:
    producer = begun(node, protocol, 0)
    channel = HeldChannel(node.node.channel)
    node.node.channel = channel
    network = MemoryNetwork(node.clock)
    server = Server(network, node.node.clock, node.dispatch)
    server.listen("PLAINTEXT", "127.0.0.1", 0)
    client = network.client()
    requests = [producer.request(0, sequence=sequence) for sequence in (0, 1)]
    client.send(b"".join(frame(node.frame(request, producer.produce_version)) for request in requests))
    client.hang_up()
    node.clock.run_for(10)
    channel.let_go()
    node.clock.run_for(10)
    assert server.counters.connections == 0
    node.node.channel = channel.channel
    producer.sequences[0] = 2
    assert producer.produce(0) == [0]
    assert producer.end(commit=True) == 0
    assert committed(node) == ([0, 1, 2], 4)
