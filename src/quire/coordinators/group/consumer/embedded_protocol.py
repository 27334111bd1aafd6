"""What classic consumers say in the opaque bytes of JoinGroup and SyncGroup, read and written for them.

In a classic group only its members understand these bytes. In a consumer group the coordinator speaks for all of them,
and so has to. Each begins with its version; a version of the future begins as the newest that is known.
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
    """ProtocolError for what is no subscription."""
    subscription: ConsumerProtocolSubscription
    version = min(version_of(data), _NEWEST)
    subscription, _ = decoder(ConsumerProtocolSubscription, version)(data, _VERSION.size)
    return subscription


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Without a byte, none. ProtocolError for what is no assignment."""
    if not data:
        return ConsumerProtocolAssignment()
    assignment: ConsumerProtocolAssignment
    version = min(version_of(data), _NEWEST)
    assignment, _ = decoder(ConsumerProtocolAssignment, version)(data, _VERSION.size)
    return assignment


def write_assignment(assignment: Assignment, version: int, image: ClusterImage) -> bytes:
    """In the version in which the member speaks. A topic that has been deleted is left out: it has no name any more."""
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
    """What the member says it has; nothing for a member that gives up everything before it joins again."""
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
