"""Connections of the metadata log to other controllers, one per address and purpose.

A connection may also close between two requests, for example while a follower syncs what it has fetched. The next
request then finds that it cannot reconnect, and reports the loss.
"""

from quire.address import Address
from quire.client.errors import DisconnectedError, UnreachableError
from quire.client.link import CallResult
from quire.node.node_links import NodeLinks
from quire.pending import Pending, completed
from quire.protocol.messages.fetch import FetchRequest
from quire.protocol.messages.vote import VoteRequest
from quire.protocol.schema import Message
from quire.raft.peers import NoAnswer, Purpose
from quire.seams import Clock, Connector, Random

_VERSIONS = {VoteRequest.API_KEY: (2, 2), FetchRequest.API_KEY: (17, 18)}
"""Since Kafka 4.0: earlier versions have no pre-votes, or do not name the directory of a replica."""


class RaftPeers:
    """Implements `quire.raft.peers.Peers`."""

    __slots__ = ("_answering", "_client_id", "_links", "_timeout_ms")

    def __init__(self, node_id: int, timeout_ms: int, *, clock: Clock, network: Connector, random: Random) -> None:
        self._client_id = f"raft-{node_id}"
        self._timeout_ms = timeout_ms
        self._links: NodeLinks[tuple[Address, Purpose]] = NodeLinks(clock=clock, network=network, random=random)
        self._answering: set[tuple[Address, Purpose]] = set()
        """Where the last request was answered, so a connection was open then."""

    def ask(self, address: Address, purpose: Purpose, request: Message) -> Pending[Message | NoAnswer]:
        if self._links.closed:
            return completed(NoAnswer("this node is stopping", connection_lost=False))
        key = (address, purpose)
        link = self._links.link(key, address, self._client_id)
        result = link.call(request, self._timeout_ms, versions=_VERSIONS.get(request.API_KEY))
        return result.then(lambda outcome: self._outcome(key, outcome))

    def close(self) -> None:
        self._links.close()

    def _outcome(self, key: tuple[Address, Purpose], outcome: CallResult) -> Message | NoAnswer:
        if isinstance(outcome, Message):
            self._answering.add(key)
            return outcome
        closed_before = key in self._answering and isinstance(outcome, UnreachableError)
        self._answering.discard(key)
        return NoAnswer(str(outcome), connection_lost=closed_before or isinstance(outcome, DisconnectedError))
