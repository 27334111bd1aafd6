"""The metadata of consumers in JoinGroup and SyncGroup, and how a group leader assigns partitions."""

from collections.abc import Mapping, Sequence

from quire.protocol.codec import decoder, encode
from quire.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from simulator.group_ledger import Owned, sorted_owned
from simulator.random import SimRandom

VERSION_BYTES = 2
VERSION = 1
VERSION_WITH_GENERATION = 2
"""Its first fields are those of VERSION."""


def subscription(topics: Sequence[str], generation: int | None = None) -> bytes:
    """The metadata of a consumer that joins, and so owns nothing; `generation` is its previous one."""
    version = VERSION if generation is None else VERSION_WITH_GENERATION
    content = ConsumerProtocolSubscription(topics=list(topics))
    if generation is not None:
        content.generation_id = generation
    return version.to_bytes(VERSION_BYTES, "big") + encode(content, version)


def subscribed(metadata: bytes) -> list[str]:
    found, _ = decoder(ConsumerProtocolSubscription, VERSION)(memoryview(metadata), VERSION_BYTES)
    return found.topics


def assignment(owned: Owned) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, index in owned:
        topics.setdefault(topic, []).append(index)
    assigned = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=indexes) for topic, indexes in topics.items()
    ]
    return VERSION.to_bytes(VERSION_BYTES, "big") + encode(
        ConsumerProtocolAssignment(assigned_partitions=assigned), VERSION
    )


def assigned(content: bytes) -> Owned:
    """A member that the leader left out gets empty bytes."""
    if not content:
        return ()
    found, _ = decoder(ConsumerProtocolAssignment, VERSION)(memoryview(content), VERSION_BYTES)
    return sorted_owned((topic.topic, index) for topic in found.assigned_partitions for index in topic.partitions)


def assign(random: SimRandom, members: Mapping[str, Sequence[str]], partitions: Owned) -> dict[str, Owned]:
    """Assigns each partition to a random subscriber of its topic. `members` has topics by member id."""
    owned: dict[str, list[tuple[str, int]]] = {member_id: [] for member_id in members}
    turn = random.below(100)
    for topic, index in partitions:
        interested = [member_id for member_id, topics in members.items() if topic in topics]
        if interested:
            turn += 1
            owned[interested[turn % len(interested)]].append((topic, index))
    return {member_id: sorted_owned(each) for member_id, each in owned.items()}
