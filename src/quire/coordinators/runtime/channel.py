"""How a coordinator reaches partitions and other coordinators, those of its own node included: by requests alone.

So nothing is taken for granted that would not hold between machines: an answer may come late, or never, a request may
be carried out although no answer came, and two requests may arrive in another order than they were sent in.
"""

from typing import Protocol

from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.schema import Message


class Channel(Protocol):
    def send(self, node_id: int, request: Message, version: int) -> Pending[Message | ApiError]:
        """Becomes the response, or an ApiError where the node could not be asked. May never become anything."""
        ...
