"""The partition a shard keeps its state in, as the shard sees it.

Every call is a request: its answer may come late or never, and what it asked for may happen all the same. Therefore an
append says where it expects the log to end: one that was given up, and arrives after all when others have been
written, changes nothing.
"""

from typing import NamedTuple, Protocol

from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.seams import Buffer


class Bounds(NamedTuple):
    """What there is to be replayed: from `start` up to, not including, `end`."""

    start: int
    end: int


class StateLog(Protocol):
    def bounds(self) -> Pending[Bounds | ApiError]: ...

    def read(self, offset: int) -> Pending[Buffer | ApiError]:
        """Batches from the one that holds `offset` on, that one whole; empty where there is nothing.

        The bytes may end anywhere within a later batch, also within its header.
        """
        ...

    def append(self, batch: bytearray, expected_offset: int) -> Pending[ApiError | None]:
        """Done when the batch is committed at `expected_offset`. It is patched in place."""
        ...
