"""Connections of the metadata log to other controllers, one per address and purpose."""

from quire.client.errors import DisconnectedError
from quire.client.link import CallResult
from quire.client.servers import Address
from quire.node.node_links import NodeLinks
from quire.pending import Pending, completed
from quire.protocol.messages.fetch import FetchRequest
from quire.protocol.messages.vote import VoteRequest
from quire.protocol.schema import Message
from quire.raft.peers import NoAnswer, PeerAddress, Purpose
from quire.seams import Clock, Connector, Random

_VERSIONS = {VoteRequest.API_KEY: (2, 2), FetchRequest.API_KEY: (17, 18)}
"""Since Kafka 4.0: earlier versions have no pre-votes, or do not name the directory of a replica."""


class RaftPeers:
    """Implements `quire.raft.peers.Peers`."""

    __slots__ = ("_client_id", "_links", "_timeout_ms")

    def __init__(self, node_id: int, timeout_ms: int, *, clock: Clock, network: Connector, random: Random) -> None:
        self._client_id = f"raft-{node_id}"
        self._timeout_ms = timeout_ms
        self._links: NodeLinks[tuple[PeerAddress, Purpose]] = NodeLinks(clock=clock, network=network, random=random)

    def ask(self, address: PeerAddress, purpose: Purpose, request: Message) -> Pending[Message | NoAnswer]:
        if self._links.closed:
            return completed(NoAnswer("this node is stopping", connection_lost=False))
        link = self._links.link((address, purpose), Address(address.host, address.port), self._client_id)
        return link.call(request, self._timeout_ms, versions=_VERSIONS.get(request.API_KEY)).then(_or_no_answer)

    def close(self) -> None:
        self._links.close()


def _or_no_answer(result: CallResult) -> Message | NoAnswer:
    if isinstance(result, Message):
        return result
    return NoAnswer(str(result), connection_lost=isinstance(result, DisconnectedError))
