"""Channel: how coordinators send requests to partitions and other coordinators, those of their own node included.

Coordinators rely only on what holds between machines: a response may come late or never, a request may be carried out
without a response, and two requests may arrive in another order than they were sent.
"""

from typing import Protocol

from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.schema import Message


class Channel(Protocol):
    def send(self, node_id: int, request: Message, version: int) -> Pending[Message | ApiError]:
        """Becomes the response, or an ApiError if the node cannot be reached. It may never complete."""
        ...
