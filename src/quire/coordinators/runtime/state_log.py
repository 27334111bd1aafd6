"""StateLog: the log of a shard, as the shard sees it.

Every call is a request: the response may come late or never, and the request may be carried out even so. Therefore an
append has the expected end of the log. A late append that arrives after others were written changes nothing.
"""

from typing import NamedTuple, Protocol

from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.seams import Buffer


class Bounds(NamedTuple):
    """The offsets to replay: from `start` up to, not including, `end`."""

    start: int
    end: int


class StateLog(Protocol):
    def bounds(self) -> Pending[Bounds | ApiError]: ...

    def read(self, offset: int) -> Pending[Buffer | ApiError]:
        """Batches, beginning with the one that has `offset`, which is complete. Empty if there is none.

        The bytes may end within a later batch, even within its header.
        """
        ...

    def append(self, batch: bytearray, expected_offset: int) -> Pending[ApiError | None]:
        """Done when the batch is committed at `expected_offset`. The batch is modified in place."""
        ...
