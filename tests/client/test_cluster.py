import pytest

from quire.client.cluster import ANY
from quire.client.errors import DisconnectedError, TimedOutError, UnreachableError
from quire.client.wrong_server import WrongServerError
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.seams import Transport
from tests.client.model_cluster import PORT, ModelCluster


def test_any_node_answers_and_the_cluster_is_known_afterwards() -> None:
    model = ModelCluster(nodes=3)
    model.create("t", partitions=3)
    cluster = model.client()
    model.run(cluster.refresh(["t"]))
    assert sorted(cluster.metadata.brokers) == [1, 2, 3]
    assert [cluster.metadata.leader("t", index) for index in range(3)] == [1, 2, 3]


def test_a_call_to_any_node_tries_the_next_when_one_is_down() -> None:
    model = ModelCluster(nodes=3)
    model.network.crash("node-1")
    model.network.crash("node-3")
    cluster = model.client()
    for _ in range(5):
        model.run(cluster.refresh([]))
    assert {node for node, _ in model.requests} == {2}


def test_when_no_server_is_reachable_the_error_names_every_address() -> None:
    model = ModelCluster(nodes=2)
    for node in model.nodes:
        model.network.crash(f"node-{node}")
    with pytest.raises(UnreachableError, match="node-1:9092") as caught:
        model.run(model.client().refresh([]))
    assert "node-2:9092" in str(caught.value)


def test_a_node_that_was_down_is_found_again() -> None:
    model = ModelCluster()
    cluster = model.client()
    model.run(cluster.refresh([]))
    model.network.crash("node-1")
    with pytest.raises(DisconnectedError, match="node-1:9092"):
        model.run(cluster.refresh([]))
    model.start(1)
    model.run(cluster.refresh([]))


def test_a_broken_connection_fails_requests_in_flight_because_their_outcome_is_unknown() -> None:
    model = ModelCluster()
    model.carry_out_and_drop("InitProducerId")
    cluster = model.client()
    with pytest.raises(DisconnectedError):
        model.run(cluster.ask(ANY, InitProducerIdRequest(), InitProducerIdResponse))
    again = model.run(cluster.ask(ANY, InitProducerIdRequest(), InitProducerIdResponse))
    assert again.producer_id == 4002


def test_a_silent_broker_times_out_and_the_next_call_gets_a_new_connection() -> None:
    model = ModelCluster()
    model.swallow("InitProducerId")
    cluster = model.client(request_timeout_ms=5000)
    before_ms = model.clock.monotonic_ms()
    with pytest.raises(TimedOutError, match="5 s"):
        model.run(cluster.ask(ANY, InitProducerIdRequest(), InitProducerIdResponse))
    assert 5000 <= model.clock.monotonic_ms() - before_ms < 5100
    model.run(cluster.ask(ANY, InitProducerIdRequest(), InitProducerIdResponse))


class Listener:
    """A server that is not a Kafka broker: it answers every piece it gets with the same bytes, or not at all."""

    def __init__(self, transport: Transport, answer: bytes) -> None:
        self.transport = transport
        self.answer = answer

    def buffer(self) -> memoryview:
        return memoryview(bytearray(1000))

    def received(self, size: int) -> None:
        self.transport.write([self.answer])

    def drained(self) -> None: ...

    def closed(self, reason: str) -> None: ...


def replace_by(model: ModelCluster, answer: bytes) -> None:
    model.network.crash("node-1")
    model.network.host("node-1").listen("", PORT, lambda transport: Listener(transport, answer))


def test_a_server_that_accepts_but_never_answers_times_out_and_is_retried() -> None:
    model = ModelCluster()
    replace_by(model, b"")
    cluster = model.client(request_timeout_ms=3000)
    with pytest.raises(TimedOutError, match="3 s"):
        model.run(cluster.refresh([]))
    model.network.crash("node-1")
    model.start(1)
    model.run(cluster.refresh([]))


def test_a_refused_connection_is_not_knocked_at_again_at_once() -> None:
    model = ModelCluster()
    cluster = model.client()
    model.network.crash("node-1")
    started_ms = model.clock.monotonic_ms()
    for _ in range(6):
        with pytest.raises(UnreachableError):
            model.run(cluster.refresh([]))
    # 50 + 100 + 200 + 400 + 800 ms between six attempts, each up to a fifth shorter
    assert model.clock.monotonic_ms() - started_ms > 0.8 * 1550


def test_calls_made_before_the_connection_is_ready_are_sent_in_order_once_it_is() -> None:
    model = ModelCluster()
    cluster = model.client()
    calls = [cluster.call(ANY, MetadataRequest(topics=[])) for _ in range(4)]
    for call in calls:
        assert isinstance(model.wait(call), MetadataResponse)
    assert model.network.connections("client") == 1


def test_an_unknown_node_cannot_be_called() -> None:
    model = ModelCluster()
    outcome = model.wait(model.client().call(7, MetadataRequest(topics=[])))
    assert isinstance(outcome, UnreachableError)


def test_closing_fails_waiting_and_later_requests() -> None:
    model = ModelCluster()
    model.swallow("InitProducerId")
    cluster = model.client()
    waiting = cluster.call(ANY, InitProducerIdRequest())
    model.clock.run_for(1000)
    cluster.close()
    assert isinstance(model.wait(waiting), DisconnectedError)
    assert isinstance(model.wait(cluster.call(ANY, MetadataRequest(topics=[]))), DisconnectedError)


def test_a_server_that_does_not_speak_kafka_is_an_error_and_not_a_hang() -> None:
    model = ModelCluster()
    replace_by(model, b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(WrongServerError, match="node-1:9092 is an HTTP server, not a Kafka broker"):
        model.run(model.client().refresh([]))
