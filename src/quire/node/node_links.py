"""Connections to other nodes: one for each purpose, so that none waits behind another.

A server answers the requests of a connection one after the other, and a request that times out closes its connection.
A heartbeat must neither wait behind the creation of a thousand topics nor be lost with it.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from quire.address import Address
from quire.client.link import Link
from quire.seams import Clock, Connector, Random

K = TypeVar("K")


class NodeLinks(Generic[K]):
    """`K` says what a link is for. Each is opened when it is first used."""

    __slots__ = ("_clock", "_links", "_network", "_random", "closed")

    def __init__(self, *, clock: Clock, network: Connector, random: Random) -> None:
        self._clock = clock
        self._network = network
        self._random = random
        self._links: dict[K, Link] = {}
        self.closed = False
        """The node stops: from now on no link is opened."""

    def link(self, purpose: K, address: Address, client_id: str) -> Link:
        """A link to the address. If the last one led elsewhere it is closed, and calls that wait on it fail."""
        assert not self.closed, "this node is stopping"
        last = self._links.get(purpose)
        if last is not None and last.address == address:
            return last
        link = Link(address, client_id, self._clock, self._network, self._random, between_nodes=True)
        self._links[purpose] = link
        if last is not None:
            last.close()  # when the new one is in place: a call that fails may be sent again at once
        return link

    def close_unless(self, is_right: Callable[[K, Address], bool]) -> None:
        """Closes links that lead to wrong addresses. Calls that wait on them fail."""
        wrong = [(purpose, link) for purpose, link in self._links.items() if not is_right(purpose, link.address)]
        for purpose, _ in wrong:
            del self._links[purpose]
        for _, link in wrong:
            link.close()

    def close(self) -> None:
        self.closed = True
        self.close_unless(lambda _, __: False)
