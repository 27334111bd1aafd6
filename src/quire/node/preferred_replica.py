"""Which replica a consumer should read from: one in its own rack, if the operator wants that (KIP-392).

With `replica.selector.class` set to Kafka's RackAwareReplicaSelector, the leader sends a consumer that names its rack
to the replica of that rack which has copied the most. That replica must be up and have the offset that the consumer
wants to read. Consumers in the leader's own rack read from the leader.
"""

from typing import TYPE_CHECKING

from quire.replication.follower_role import FollowerRole
from quire.replication.leader_role import LeaderRole

if TYPE_CHECKING:
    from quire.node.node import Node

_RACK_AWARE = "RackAwareReplicaSelector"


def preferred_replica(node: "Node", role: LeaderRole | FollowerRole, rack: str, offset: int) -> int | None:
    """The follower to read from instead of this replica; None if this replica should be read."""
    selector = node.config.get("replica.selector.class")
    if not isinstance(role, LeaderRole) or not isinstance(selector, str) or not selector.endswith(_RACK_AWARE):
        return None
    brokers = node.image.brokers
    own = brokers.get(node.node_id)
    if own is not None and own.rack == rack:
        return None
    copies = [
        (progress.end_offset, replica_id)
        for replica_id, progress in role.followers.holding(offset)
        if replica_id in brokers and brokers[replica_id].is_active and brokers[replica_id].rack == rack
    ]
    return max(copies)[1] if copies else None
