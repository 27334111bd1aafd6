"""The embedded consumer protocol: subscriptions in JoinGroup and assignments in SyncGroup.

In a classic group these bytes are opaque to the coordinator. In a consumer group it decodes and encodes them for the
members of the classic protocol. They begin with a version. Later versions begin like the newest one that is known.
"""

from struct import Struct

from quire.coordinators.group.consumer.assignors import Assignment
from quire.coordinators.group.consumer.reconciliation import Owned
from quire.metadata.image import ClusterImage
from quire.protocol.codec import decoder, encoder
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

PROTOCOL_TYPE = "consumer"
NO_GENERATION = -1
_VERSION = Struct(">h")
_NEWEST = 3


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """ProtocolError if the bytes cannot be decoded."""
    subscription: ConsumerProtocolSubscription
    version = min(version_of(data), _NEWEST)
    subscription, _ = decoder(ConsumerProtocolSubscription, version)(data, _VERSION.size)
    return subscription


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Empty bytes are an empty assignment. ProtocolError if the bytes cannot be decoded."""
    if not data:
        return ConsumerProtocolAssignment()
    assignment: ConsumerProtocolAssignment
    version = min(version_of(data), _NEWEST)
    assignment, _ = decoder(ConsumerProtocolAssignment, version)(data, _VERSION.size)
    return assignment


def write_assignment(assignment: Assignment, version: int, image: ClusterImage) -> bytes:
    """In the member's version of the protocol. Leaves out deleted topics, which no longer have a name."""
    version = min(version, _NEWEST)
    out = bytearray(_VERSION.pack(version))
    named = {topic.name: assignment[id_] for id_ in assignment if (topic := image.topic_by_id(id_)) is not None}
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=sorted(named[name]))
            for name in sorted(named)
        ]
    )
    encoder(ConsumerProtocolAssignment, version)(message, out)
    return bytes(out)


def owned_by(subscription: ConsumerProtocolSubscription, image: ClusterImage) -> Owned:
    """The partitions that the member reports; none for an eager member, which revokes all before it joins."""
    return [
        (topic.topic_id, each.partitions)
        for each in subscription.owned_partitions
        if (topic := image.topic(each.topic)) is not None
    ]


def assigned_to(assignment: ConsumerProtocolAssignment, image: ClusterImage) -> dict[bytes, set[int]]:
    assigned: dict[bytes, set[int]] = {}
    for each in assignment.assigned_partitions:
        topic = image.topic(each.topic)
        if topic is not None and each.partitions:
            assigned.setdefault(topic.topic_id, set()).update(each.partitions)
    return assigned


def version_of(data: bytes) -> int:
    if len(data) < _VERSION.size or (version := _VERSION.unpack_from(data)[0]) < 0:
        raise ProtocolError("neither a subscription nor an assignment of a consumer")
    return int(version)
