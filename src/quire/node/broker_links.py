"""Connections to other brokers: one for each broker and API, so that markers do not wait behind verifications.

They lead to the listener that brokers use among themselves (`inter.broker.listener.name`), at the address of the
broker's latest registration. A request has one attempt; its sender decides whether to send it again.
"""

from collections.abc import Callable
from typing import Any

from quire.address import Address
from quire.client.errors import TimedOutError, UnsupportedError
from quire.metadata.image import ClusterImage
from quire.node.node_links import NodeLinks
from quire.pending import Pending, completed
from quire.protocol import apis
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.schema import Message
from quire.seams import Clock, Connector, Random


class BrokerLinks:
    __slots__ = ("_image", "_links", "_listener", "_node_id", "_timeout_ms")

    def __init__(
        self,
        node_id: int,
        listener: str,
        image: Callable[[], ClusterImage],
        *,
        clock: Clock,
        network: Connector,
        random: Random,
        timeout_ms: Callable[[], int],
    ) -> None:
        self._node_id = node_id
        self._listener = listener
        self._image = image
        self._timeout_ms = timeout_ms
        self._links: NodeLinks[tuple[int, int]] = NodeLinks(clock=clock, network=network, random=random)
        """By node id and API key."""

    def send(self, node_id: int, request: Message, version: int) -> Pending[Message | ApiError]:
        address = None if self._links.closed else self.address_of(node_id)
        if address is None:
            return completed(ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {node_id} is not registered"))
        key = request.API_KEY
        link = self._links.link((node_id, key), address, f"quire-{self._node_id}-{apis.API_NAMES[key]}")
        return link.call(request, self._timeout_ms(), versions=(version, version)).then(_as_outcome)

    def brokers_changed(self) -> None:
        """Closes connections to addresses where a broker is no longer registered. Requests on them fail."""
        self._links.close_unless(lambda purpose, address: address == self.address_of(purpose[0]))

    def close(self) -> None:
        self._links.close()

    def address_of(self, node_id: int) -> Address | None:
        """Where other brokers reach this one; None if it is not registered."""
        broker = self._image().brokers.get(node_id)
        endpoint = None if broker is None else broker.endpoint(self._listener)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)


def _as_outcome(response: Any) -> Any:
    if not isinstance(response, Exception):
        return response
    code = ErrorCode.BROKER_NOT_AVAILABLE
    if isinstance(response, TimedOutError):
        code = ErrorCode.REQUEST_TIMED_OUT
    elif isinstance(response, UnsupportedError):
        code = ErrorCode.UNSUPPORTED_VERSION
    return ApiError(code, str(response))
