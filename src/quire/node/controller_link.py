"""Connections to the active controller, wherever it is, one for each purpose."""

from collections.abc import Callable
from enum import Enum

from quire.address import Address
from quire.client.connection import Versions
from quire.client.errors import DisconnectedError, UnreachableError
from quire.client.link import CallResult
from quire.node.node_links import NodeLinks
from quire.pending import Pending, completed
from quire.protocol.schema import Message
from quire.raft.wire import LeaderEndpoint
from quire.seams import Clock, Connector, Random


class Purpose(Enum):
    LIFECYCLE = "lifecycle"
    """The broker's registration and heartbeats, and nothing else. If this connection closes, the controller checks
    whether the broker has ended."""
    FORWARDING = "forwarding"
    """Requests of clients, and topics that the broker itself needs."""
    PRODUCER_IDS = "producer-ids"
    ISR = "isr"
    """Changes of ISRs, which acks=all waits for."""
    DIRECTORIES = "directories"
    VOTERS = "voters"
    """A controller's requests about itself: its registration and its vote."""
    PROGRESS = "progress"
    """Asks how far the metadata log is committed."""


class ControllerLinks:
    """The links of one node. They are opened again when another node becomes the controller.

    A call has one attempt and one result: the response, or the exception that says why there is none.
    """

    __slots__ = ("_endpoint", "_leader", "_links", "_node_id")

    def __init__(
        self,
        node_id: int,
        leader: Callable[[], LeaderEndpoint | None],
        *,
        clock: Clock,
        network: Connector,
        random: Random,
    ) -> None:
        self._node_id = node_id
        self._leader = leader
        self._endpoint: LeaderEndpoint | None = None
        self._links: NodeLinks[Purpose] = NodeLinks(clock=clock, network=network, random=random)

    def call(
        self, purpose: Purpose, request: Message, timeout_ms: float, versions: Versions | None = None
    ) -> Pending[CallResult]:
        if self._links.closed:
            return completed(DisconnectedError("this node is stopping"))
        self.leader_changed()
        if self._endpoint is None:
            return completed(UnreachableError("no active controller is known"))
        address = Address(self._endpoint.host, self._endpoint.port)
        link = self._links.link(purpose, address, f"quire-{self._node_id}-{purpose.value}")
        return link.call(request, timeout_ms, versions=versions)

    def leader_changed(self) -> None:
        """Calls that wait for an earlier controller fail."""
        endpoint = self._leader()
        if endpoint != self._endpoint:
            self._endpoint = endpoint
            self._links.close_unless(lambda _, __: False)

    def close(self) -> None:
        self._links.close()
