"""Requests of the metadata log to another controller, and what they report when its process ends."""

import pytest

from quire.address import Address
from quire.node.raft_peers import RaftPeers
from quire.pending import Pending
from quire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from quire.protocol.schema import Message
from quire.raft.peers import NoAnswer, Purpose
from simulator.random import SimRandom
from tests.node.sim_nodes import CONTROLLER_PORT, SimNodes

TIMEOUT_MS = 2_000


class Asker:
    """Has a connection to the controller on node 1."""

    def __init__(self) -> None:
        self.nodes = SimNodes(["broker,controller"]).start()
        network = self.nodes.network.host("here")
        random = SimRandom(1).stream("peers")
        self._peers = RaftPeers(7, TIMEOUT_MS, clock=self.nodes.clock, network=network, random=random)

    def send(self) -> Pending[Message | NoAnswer]:
        return self._peers.ask(Address("node1", CONTROLLER_PORT), Purpose.FETCH, ApiVersionsRequest())

    def answer(self) -> Message | NoAnswer:
        return self.nodes.settle(self.send())

    def loses_connection(self) -> bool:
        answer = self.answer()
        assert isinstance(answer, NoAnswer)
        return answer.connection_lost


@pytest.fixture
def asker() -> Asker:
    asker = Asker()
    assert isinstance(asker.answer(), ApiVersionsResponse)
    return asker


def test_a_connection_that_closes_during_a_request_is_lost(asker: Asker) -> None:
    answer = asker.send()
    asker.nodes.kill(1)
    outcome = asker.nodes.settle(answer)
    assert isinstance(outcome, NoAnswer) and outcome.connection_lost


def test_a_connection_that_closed_between_two_requests_is_lost_once(asker: Asker) -> None:
    asker.nodes.kill(1)
    asker.nodes.clock.run_for(10)
    assert asker.loses_connection()
    assert not asker.loses_connection()


def test_a_controller_that_restarted_between_two_requests_answers_the_next(asker: Asker) -> None:
    asker.nodes.kill(1)
    asker.nodes.restart(1)
    assert isinstance(asker.answer(), ApiVersionsResponse)


def test_a_controller_that_does_not_answer_in_time_has_lost_no_connection(asker: Asker) -> None:
    asker.nodes.process(1).pause()
    assert not asker.loses_connection()
    asker.nodes.process(1).resume()
    asker.nodes.kill(1)
    assert not asker.loses_connection()
