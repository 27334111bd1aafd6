"""One member of a classic group: what it sent when it joined, its assignment, and its pending request."""

from collections.abc import Hashable

from quire.coordinators.runtime.machine import TimedOperation
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.join_group import JoinGroupResponse
from quire.protocol.messages.sync_group import SyncGroupResponse

PendingJoinResponse = Pending[JoinGroupResponse | ApiError]
PendingSyncResponse = Pending[SyncGroupResponse | ApiError]

Protocols = dict[str, bytes]
"""Metadata by protocol name (a consumer's assignors), in the member's order of preference."""

_OVERHEAD_BYTES = 100
"""Approximate memory of a member, and of each of its protocols, without names and metadata."""


def size_of(protocols: Protocols) -> int:
    return sum(_OVERHEAD_BYTES + len(name) + len(metadata) for name, metadata in protocols.items())


class Member:
    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "expire",
        "instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_key",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        """It has not completed a join phase yet, so its client may not know the member id."""
        self.awaiting_join: PendingJoinResponse | None = None
        self.awaiting_sync: PendingSyncResponse | None = None
        self.session_key: Hashable = None
        self.expire: TimedOperation | None = None

    def __repr__(self) -> str:
        return f"Member({self.member_id})"

    @property
    def size_bytes(self) -> int:
        """Of what it sent when it joined."""
        names = len(self.member_id) + len(self.client_id) + len(self.instance_id or "")
        return _OVERHEAD_BYTES + names + size_of(self.protocols)

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def may_expire(self) -> bool:
        """A member that waits sends no heartbeats.

        A new member expires even so: if its client gave up and joined under another id, every rebalance would wait for
        it.
        """
        return self.is_new or (self.awaiting_join is None and self.awaiting_sync is None)

    def has_same_protocols(self, protocols: Protocols) -> bool:
        """In the same order of preference."""
        return list(self.protocols.items()) == list(protocols.items())
