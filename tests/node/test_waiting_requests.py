"""Requests that waited for a flush or for records: a disconnect delays nothing and leaves no reference cycles."""

import gc
from collections.abc import Callable, Iterator

import pytest

from quire.network.handler import EncodedResponse
from quire.network.server import Server
from quire.pending import Pending
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from quire.protocol.records import Record, build_batch
from tests.network.memory import MemoryNetwork, frame
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request

REQUESTS = 20


@pytest.fixture
def garbage() -> Iterator[Callable[[], list[object]]]:
    """Quire's objects that were found in reference cycles."""

    def found() -> list[object]:
        gc.collect()
        return [each for each in gc.garbage if type(each).__module__.startswith("quire")]

    # The first run ends generators that earlier tests left suspended. The nodes they refer to go with the next one.
    while gc.collect():
        pass
    gc.disable()
    flags = gc.get_debug()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
        gc.enable()


def produce_frame(node: SimulatedNode) -> memoryview:
    return node.frame(produce_request("t", -1, bytes(build_batch([Record(0, -1, None, b"v")]))), 9)


def fetch_frame(node: SimulatedNode, offset: int) -> memoryview:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    request = FetchRequest(max_wait_ms=100, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[wanted])])
    return node.frame(request, 12)


def answered(node: SimulatedNode, reply: Pending[EncodedResponse] | EncodedResponse) -> None:
    assert isinstance(reply, Pending) and not reply.done
    answers: list[EncodedResponse] = []
    reply.when_done(answers.append)
    node.clock.run_until(lambda: bool(answers))


def test_a_write_that_waited_for_its_flush_is_released_when_it_is_answered(
    node: SimulatedNode, garbage: Callable[[], list[object]]
) -> None:
    node.create_topic("t", flush_messages="1")
    gc.collect()
    gc.garbage.clear()
    for _ in range(REQUESTS):
        answered(node, node.dispatch(node.info, produce_frame(node)))
    assert garbage() == []


def test_a_fetch_that_waited_for_records_is_released_when_it_is_answered(
    node: SimulatedNode, garbage: Callable[[], list[object]]
) -> None:
    node.create_topic("t")
    gc.collect()
    gc.garbage.clear()
    for offset in range(REQUESTS):
        waiting = node.dispatch(node.info, fetch_frame(node, offset))
        node.dispatch(node.info, produce_frame(node))
        answered(node, waiting)
    assert garbage() == []


@pytest.mark.parametrize("frame", [produce_frame, lambda node: fetch_frame(node, 0)], ids=["produce", "fetch"])
def test_a_request_is_dropped_when_its_client_disconnects(
    node: SimulatedNode, garbage: Callable[[], list[object]], frame: Callable[[SimulatedNode], memoryview]
) -> None:
    node.create_topic("t", flush_messages="1")
    gc.collect()
    gc.garbage.clear()
    for _ in range(REQUESTS):
        reply = node.dispatch(node.info, frame(node))
        assert isinstance(reply, Pending) and not reply.done
        reply.when_done(lambda _: None)
        reply.abandon()
        # Its entry in the partition's queue is removed when its offset is reached.
        node.clock.run_for(1000)
    assert garbage() == []


@pytest.mark.parametrize("waits", [produce_frame, lambda node: fetch_frame(node, 0)], ids=["produce", "fetch"])
def test_a_waiting_request_delays_nothing_else_of_a_disconnected_client(
    node: SimulatedNode, waits: Callable[[SimulatedNode], memoryview]
) -> None:
    node.create_topic("t", flush_messages="1")
    network = MemoryNetwork(node.clock)
    server = Server(network, node.node.clock, node.dispatch)
    server.listen("PLAINTEXT", "127.0.0.1", 0)
    client = network.client()
    client.send(frame(waits(node)) + frame(produce_frame(node)))
    written = node.node.partitions.leader("t", None, 0).log
    before = written.end_offset
    client.hang_up()
    node.clock.run_for(0)
    assert written.end_offset == before + 1
    assert server.counters.connections == 0
