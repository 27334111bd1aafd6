"""A refusal is logged once per controller and kind of request, and remembered until there is an answer."""

import logging

import pytest

from quire.address import Address
from quire.pending import Pending, completed
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchResponse
from quire.protocol.schema import Message
from quire.raft.addresses import Addresses
from quire.raft.messages import FetchAnswer, FetchRequest
from quire.raft.outbox import Outbox, PeerResponse
from quire.raft.peers import NoAnswer, Purpose
from quire.raft.replicas import Endpoint, ReplicaKey
from quire.raft.wire import fetch
from simulator.clock import SimClock

ASKED = FetchRequest(1, ReplicaKey(1), 0, 0)


class Refusing:
    """Two controllers that answer a fetch with `error`; also the owner of the outbox."""

    def __init__(self) -> None:
        self.own_endpoints: tuple[Endpoint, ...] = ()
        self.error = ErrorCode.INCONSISTENT_CLUSTER_ID
        self.no_answer: NoAnswer | None = None
        self.outbox = Outbox(self, "cluster", self, Addresses(), clock=SimClock())

    def ask(self, address: Address, purpose: Purpose, request: Message) -> Pending[Message | NoAnswer]:
        if self.no_answer is not None:
            return completed(self.no_answer)
        if self.error is not ErrorCode.NONE:
            return completed(FetchResponse(error_code=self.error))
        answer = FetchAnswer(1, 2, 0)
        return completed(fetch.response(answer, 0, None))

    def close(self) -> None: ...

    def address_of(self, node_id: int) -> Address | None:
        return Address("localhost", 9093)

    def answered(self, peer: int, answer: PeerResponse) -> None: ...

    def lost(self, peer: int, fetch: int | None, *, connection_lost: bool) -> None: ...


def test_it_knows_who_did_not_answer_and_why_until_they_answer() -> None:
    sim = Refusing()
    sim.outbox.send(2, ASKED)
    address = Address("localhost", 9093)
    assert sim.outbox.unanswered == {address: "INCONSISTENT_CLUSTER_ID: the fetch was refused"}
    sim.no_answer = NoAnswer("localhost:9093 is not reachable: Connection refused", connection_lost=False)
    sim.outbox.send(2, ASKED)
    assert sim.outbox.unanswered == {address: sim.no_answer.reason}
    sim.error, sim.no_answer = ErrorCode.NONE, None
    sim.outbox.send(2, ASKED)
    assert sim.outbox.unanswered == {}


def test_a_refusal_is_logged_once_per_controller_until_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    sim = Refusing()

    def lines(to: int) -> int:
        caplog.clear()
        with caplog.at_level(logging.WARNING, "quire.raft"):
            for _ in range(3):
                sim.outbox.send(to, ASKED)
        return len(caplog.records)

    assert lines(2) == 1
    assert lines(3) == 1, "another controller"
    assert lines(2) == 0
    sim.error = ErrorCode.INVALID_REQUEST
    assert lines(2) == 1, "another error"
    sim.error = ErrorCode.NONE
    assert lines(2) == 0
    sim.error = ErrorCode.INVALID_REQUEST
    assert lines(2) == 1, "it had been accepted in between"
