"""The topics in the subscriptions that consumers send with JoinGroup."""

from collections.abc import Iterable

from quire.protocol.codec import decoder
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"
_VERSION_BYTES = 2


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """None if one of them cannot be decoded. All versions begin like version 0, future ones included."""
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
