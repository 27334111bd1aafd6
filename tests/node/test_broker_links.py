"""Connections to other brokers, tested with a node in the role of the other broker."""

from quire.metadata.image import BrokerImage, ClusterImage, Endpoint
from quire.node.broker_links import BrokerLinks
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from quire.protocol.schema import Message
from simulator.random import SimRandom
from tests.node.conftest import SimulatedNode

OTHER = 1
TIMEOUT_MS = 5_000


class Links:
    def __init__(self, node: SimulatedNode) -> None:
        self.node = node
        self.image = ClusterImage()
        self.register("node")
        self.links = BrokerLinks(
            7,
            "INTERNAL",
            lambda: self.image,
            clock=node.node.clock,
            network=node.network.host("here"),
            random=SimRandom(3).stream("links"),
            timeout_ms=lambda: TIMEOUT_MS,
        )

    def register(self, host: str, listener: str = "INTERNAL") -> None:
        endpoint = Endpoint(listener, host, 9092)
        self.image.brokers[OTHER] = BrokerImage(OTHER, 5, bytes(16), (endpoint,), fenced=False)

    def ask(self, request: Message, version: int) -> Message | ApiError:
        answer = self.links.send(OTHER, request, version)
        self.node.clock.run_until(lambda: answer.done)
        return answer.value

    def error(self, request: Message, version: int) -> ErrorCode:
        answer = self.ask(request, version)
        assert isinstance(answer, ApiError)
        return answer.code


MARKERS = WriteTxnMarkersRequest()


def test_a_request_goes_to_the_listener_that_brokers_use(node: SimulatedNode) -> None:
    links = Links(node)
    assert isinstance(links.ask(MARKERS, 2), WriteTxnMarkersResponse)
    links.register("node", "PLAINTEXT")
    assert links.error(MARKERS, 2) is ErrorCode.BROKER_NOT_AVAILABLE


def test_each_api_has_its_own_connection(node: SimulatedNode) -> None:
    links = Links(node)
    links.ask(MARKERS, 2)
    links.ask(MARKERS, 2)
    assert node.network.connections("here") == 1
    assert isinstance(links.ask(InitProducerIdRequest(transactional_id=None), 5), InitProducerIdResponse)
    assert node.network.connections("here") == 2


def test_a_request_that_does_not_reach_the_broker_is_an_error(node: SimulatedNode) -> None:
    links = Links(node)
    assert links.error(MARKERS, 99) is ErrorCode.UNSUPPORTED_VERSION
    node.network.cut("here", "node")
    assert links.error(MARKERS, 2) is ErrorCode.REQUEST_TIMED_OUT
    del links.image.brokers[OTHER]
    assert links.error(MARKERS, 2) is ErrorCode.BROKER_NOT_AVAILABLE


def test_a_broker_is_found_where_it_registered_last(node: SimulatedNode) -> None:
    links = Links(node)
    links.ask(MARKERS, 2)
    node.network.cut("here", "node")
    waiting = links.links.send(OTHER, MARKERS, 2)
    links.register("elsewhere")
    links.links.brokers_changed()
    assert isinstance(waiting.value, ApiError) and waiting.value.code is ErrorCode.BROKER_NOT_AVAILABLE
    node.network.heal()
    assert links.error(MARKERS, 2) is ErrorCode.BROKER_NOT_AVAILABLE, "no host has this name"
    links.register("node")
    assert isinstance(links.ask(MARKERS, 2), WriteTxnMarkersResponse)


def test_a_node_that_stops_opens_no_connection_any_more(node: SimulatedNode) -> None:
    links = Links(node)
    links.ask(MARKERS, 2)
    links.links.close()
    assert links.error(MARKERS, 2) is ErrorCode.BROKER_NOT_AVAILABLE
    node.clock.run_for(1_000)
    assert node.network.connections("here") == 0
