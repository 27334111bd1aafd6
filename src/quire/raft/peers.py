"""Requests to other replicas, as the metadata log sees them: an address, a request, and one result that comes later.

`quire.node.raft_peers` sends them over connections. There is one connection per purpose, because a server answers one
request of a connection at a time: votes must not wait behind a fetch that waits for records.
"""

from enum import Enum
from typing import NamedTuple, Protocol

from quire.address import Address
from quire.pending import Pending, completed
from quire.protocol.schema import Message


class Purpose(Enum):
    ELECTION = "election"
    FETCH = "fetch"
    SNAPSHOT = "snapshot"


class NoAnswer(NamedTuple):
    """No response came. If an established connection was closed, now or since the last response, the other process may
    have ended."""

    reason: str
    connection_lost: bool


class Peers(Protocol):
    def ask(self, address: Address, purpose: Purpose, request: Message) -> Pending[Message | NoAnswer]: ...

    def close(self) -> None: ...


class NoPeers:
    """For a quorum of one."""

    def ask(self, address: Address, purpose: Purpose, request: Message) -> Pending[Message | NoAnswer]:
        return completed(NoAnswer("this node has no peers", connection_lost=False))

    def close(self) -> None:
        pass
