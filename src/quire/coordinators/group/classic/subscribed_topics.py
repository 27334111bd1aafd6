"""The topics that consumers say they read, in the bytes they join with."""

from collections.abc import Iterable

from quire.protocol.codec import decoder
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"
_VERSION_BYTES = 2


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """None where one of them cannot be read. Every version begins as version 0 does, future ones included."""
    decode = decoder(ConsumerProtocolSubscription, 0)
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            if len(subscription) < _VERSION_BYTES:
                return None
            topics.update(decode(subscription, _VERSION_BYTES)[0].topics)
    except ProtocolError:
        return None
    return frozenset(topics)
