"""Connections to the active controller, wherever it is: one for each purpose, so that none waits behind another.

A server answers the requests of a connection one after the other, and a request that times out closes its connection.
A heartbeat must neither wait behind the creation of a thousand topics nor be lost with it.
"""

from collections.abc import Callable
from enum import Enum

from quire.client.connection import Versions
from quire.client.errors import DisconnectedError, UnreachableError
from quire.client.link import CallResult, Link
from quire.client.servers import Address
from quire.pending import Pending, completed
from quire.protocol.schema import Message
from quire.seams import Clock, Connector, Random

ControllerEndpoint = tuple[int, str, int]
"""The node id of a controller, and where it listens."""


class Purpose(Enum):
    LIFECYCLE = "lifecycle"
    """The broker's registration and heartbeats, and nothing else. If this connection closes, the controller checks
    whether the broker has ended."""
    FORWARDING = "forwarding"
    """Requests of clients, and topics that the broker itself needs."""
    PRODUCER_IDS = "producer-ids"
    DIRECTORIES = "directories"
    VOTERS = "voters"
    """A controller's requests about itself: its registration and its vote."""
    PROGRESS = "progress"
    """Asks how far the metadata log is committed."""


class ControllerLinks:
    """The links of one node. Each is opened when it is first used, and again when another node becomes the controller.

    A call has one attempt and one result: the response, or the exception that says why there is none.
    """

    __slots__ = ("_clock", "_closed", "_endpoint", "_leader", "_links", "_network", "_node_id", "_random")

    def __init__(
        self,
        node_id: int,
        leader: Callable[[], ControllerEndpoint | None],
        *,
        clock: Clock,
        network: Connector,
        random: Random,
    ) -> None:
        self._node_id = node_id
        self._leader = leader
        self._clock = clock
        self._network = network
        self._random = random
        self._endpoint: ControllerEndpoint | None = None
        self._closed = False
        self._links: dict[Purpose, Link] = {}

    def call(
        self, purpose: Purpose, request: Message, timeout_ms: float, versions: Versions | None = None
    ) -> Pending[CallResult]:
        if self._closed:
            return completed(DisconnectedError("this node is stopping"))
        self.leader_changed()
        if self._endpoint is None:
            return completed(UnreachableError("no active controller is known"))
        link = self._links.get(purpose)
        if link is None:
            link = self._links[purpose] = self._open(purpose, self._endpoint)
        return link.call(request, timeout_ms, versions=versions)

    def leader_changed(self) -> None:
        """Calls that wait for an earlier controller fail."""
        endpoint = self._leader()
        if endpoint != self._endpoint:
            self._endpoint = endpoint
            self._close_links()

    def close(self) -> None:
        self._closed = True
        self._close_links()

    def _close_links(self) -> None:
        links, self._links = self._links, {}
        for link in links.values():
            link.close()

    def _open(self, purpose: Purpose, endpoint: ControllerEndpoint) -> Link:
        _, host, port = endpoint
        return Link(
            Address(host, port),
            f"quire-{self._node_id}-{purpose.value}",
            self._clock,
            self._network,
            self._random,
            between_nodes=True,
        )
