"""Sends the machine's messages to other replicas as requests, and returns the result of each.

Every request has one result: the answer, or a loss. The machine gets both, and decides whether to retry.
"""

import logging
from typing import Protocol

from quire.address import Address
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode, ProtocolError
from quire.protocol.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from quire.protocol.messages.end_quorum_epoch import EndQuorumEpochResponse
from quire.protocol.messages.fetch import FetchResponse
from quire.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from quire.protocol.messages.vote import VoteResponse
from quire.protocol.schema import Message as ApiMessage
from quire.raft.addresses import Addresses
from quire.raft.messages import (
    BeginEpoch,
    EndEpoch,
    EpochAnswer,
    FetchAnswer,
    FetchRequest,
    Message,
    VoteAnswer,
    VoteRequest,
)
from quire.raft.peers import NoAnswer, Peers, Purpose
from quire.raft.replicas import Endpoint
from quire.raft.wire import LeaderEndpoint, fetch, fetch_snapshot, quorum_epoch, vote
from quire.raft.wire.fetch_snapshot import SnapshotPart, SnapshotPartRequest
from quire.seams import Clock
from quire.throttled_log import ThrottledLog

log = logging.getLogger("quire.raft")

PeerResponse = VoteAnswer | EpochAnswer | FetchAnswer


class OutboxOwner(Protocol):
    """What the outbox needs to know, and what it reports to."""

    def address_of(self, node_id: int) -> Address | None: ...

    @property
    def own_endpoints(self) -> tuple[Endpoint, ...]: ...

    def answered(self, peer: int, answer: PeerResponse) -> None: ...

    def lost(self, peer: int, fetch: int | None, *, connection_lost: bool) -> None:
        """No answer came; `fetch` is the number of a fetch."""
        ...


class Outbox:
    __slots__ = ("_addresses", "_cluster_id", "_log", "_owner", "_peers", "_refusals", "unanswered")

    def __init__(
        self, owner: OutboxOwner, cluster_id: str, peers: Peers, addresses: Addresses, *, clock: Clock
    ) -> None:
        self._owner = owner
        self._cluster_id = cluster_id
        self._peers = peers
        self._addresses = addresses
        # A controller that refuses this node does so repeatedly, perhaps for changing reasons.
        self._log = ThrottledLog(log, clock)
        self._refusals: dict[tuple[int, str], str] = {}
        """The last refusal of each kind of request, which is logged once; none if the last response was good."""
        self.unanswered: dict[Address, str] = {}
        """Where the last request got no response or was refused, and why."""

    def send(self, to: int, message: Message) -> None:
        address = self._owner.address_of(to)
        if address is None:
            log.debug("no address of controller %d is known", to)
            self._owner.lost(to, _fetch_number(message), connection_lost=False)
            return
        purpose = Purpose.FETCH if isinstance(message, FetchRequest) else Purpose.ELECTION
        result = self._peers.ask(address, purpose, self._request(message))
        result.when_done(lambda response: self._finish(to, address, message, response))

    def ask_for_part(self, to: int, message: SnapshotPartRequest) -> Pending[SnapshotPart | None]:
        """A part of a snapshot, or None if none comes."""
        address = self._owner.address_of(to)
        if address is None:
            return completed(None)

        def read(response: ApiMessage | NoAnswer) -> SnapshotPart | None:
            if isinstance(response, NoAnswer):
                return None
            assert isinstance(response, FetchSnapshotResponse)
            try:
                part = fetch_snapshot.answer(response, message)
            except (ApiError, ProtocolError) as error:
                self._refused(to, type(message).__name__, error)
                return None
            self._refusals.pop((to, type(message).__name__), None)
            return part

        request = fetch_snapshot.request(message, self._cluster_id)
        return self._peers.ask(address, Purpose.SNAPSHOT, request).then(read)

    def close(self) -> None:
        self._peers.close()

    def _request(self, message: Message) -> ApiMessage:
        cluster_id, endpoints = self._cluster_id, self._owner.own_endpoints
        match message:
            case VoteRequest():
                return vote.request(message, cluster_id)
            case BeginEpoch():
                return quorum_epoch.begin_request(message, cluster_id, endpoints)
            case EndEpoch():
                return quorum_epoch.end_request(message, cluster_id, endpoints)
            case FetchRequest():
                return fetch.request(message, cluster_id)
            case _:
                raise AssertionError(f"{message} is not a request")

    def _finish(self, to: int, address: Address, asked: Message, response: ApiMessage | NoAnswer) -> None:
        if isinstance(response, NoAnswer):
            self.unanswered[address] = response.reason
            # A leader's process is watched through the connection that is always in use, that of the fetches.
            fetch = _fetch_number(asked)
            self._owner.lost(to, fetch, connection_lost=fetch is not None and response.connection_lost)
            return
        try:
            answer = self._answer(asked, response)
        except (ApiError, ProtocolError) as error:
            self.unanswered[address] = f"{error.code.name}: {error}" if isinstance(error, ApiError) else str(error)
            self._refused(to, type(asked).__name__, error)
            self._owner.lost(to, _fetch_number(asked), connection_lost=False)
            return
        self.unanswered.pop(address, None)
        self._refusals.pop((to, type(asked).__name__), None)
        self._owner.answered(to, answer)

    def _refused(self, by: int, request: str, error: ApiError | ProtocolError) -> None:
        address = self._owner.address_of(by)
        where = "?" if address is None else f"{address.host}:{address.port}"
        refusal = f"{where} {error.code.name if isinstance(error, ApiError) else ''} {error}"
        if self._refusals.get((by, request)) == refusal:
            return
        self._refusals[(by, request)] = refusal
        if isinstance(error, ApiError) and error.code is ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._log.error(
                "the controller at %s belongs to another cluster than this node's data, which is of cluster %s: "
                "correct the addresses of the controllers, or point log.dirs to a directory of that cluster",
                where,
                self._cluster_id,
            )
        else:
            self._log.warning("the controller at %s refused or garbled a %s: %s", where, request, error)

    def _answer(self, asked: Message, response: ApiMessage) -> PeerResponse:
        match response:
            case VoteResponse():
                assert isinstance(asked, VoteRequest)
                answer: PeerResponse = vote.answer(response, asked)
            case FetchResponse():
                assert isinstance(asked, FetchRequest)
                answer = fetch.answer(response, asked)
            case BeginQuorumEpochResponse() | EndQuorumEpochResponse():
                assert isinstance(asked, BeginEpoch | EndEpoch)
                answer = quorum_epoch.answer(response, asked)
            case _:
                raise AssertionError(f"{type(response).__name__} answers no request of a replica")
        for node in response.node_endpoints:
            if node.node_id == answer.leader_id:
                self._addresses.learn(LeaderEndpoint(node.node_id, node.host, node.port), answer.epoch)
        return answer


def _fetch_number(asked: Message) -> int | None:
    return asked.number if isinstance(asked, FetchRequest) else None
