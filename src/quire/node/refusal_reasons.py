"""What to say about a refused request of another node: who sent it, why it was refused, and what to do.

Handlers that raise an ApiError give the reason themselves. The Raft machine and the active controller answer with an
error code alone; the reason is in the request and in the state of this node.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quire.protocol import uuids
from quire.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from quire.node.node import Node

EXPECTED = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.SNAPSHOT_NOT_FOUND,
        ErrorCode.POSITION_OUT_OF_RANGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""Errors of a healthy cluster, for example after an election, the restart of a node or the deletion of a topic."""

_NOT_A_NODE = "nodes do not send this: let only the nodes of this cluster reach this listener"

_ALLOW = "if it is a node, allow its principal ClusterAction on the cluster"

ADVICE: dict[ErrorCode, str] = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _ALLOW,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _ALLOW,
    ErrorCode.INCONSISTENT_CLUSTER_ID: "correct the addresses of the controllers or log.dirs on that node",
    ErrorCode.INVALID_REQUEST: _NOT_A_NODE,
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: _NOT_A_NODE,
    ErrorCode.UNSUPPORTED_VERSION: "upgrade the older of the two nodes",
    ErrorCode.FENCED_LEADER_EPOCH: "it learns the leader from the response, so there is nothing to do",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "it tries again, so there is nothing to do",
    ErrorCode.SNAPSHOT_NOT_FOUND: "it asks for the next one, so there is nothing to do",
    ErrorCode.INVALID_VOTER_KEY: "correct the address of that voter; if the disk of this node was emptied, remove the "
    "voter and add it again (`quire quorum remove`, `quire quorum add`)",
    ErrorCode.STALE_BROKER_EPOCH: "it registers again; if this repeats, stop the second process with its node.id",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "it registers again; stop it if it should not return",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "stop one of the two, or give it a node.id of its own",
    ErrorCode.INVALID_REGISTRATION: "upgrade that broker",
}


def is_routine(api: str, request: Any, code: ErrorCode) -> bool:
    """Whether a refusal is not worth a line: the sender looks for the leader, and learns it from the response."""
    if code in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        return True
    if api != "Vote" or code is not ErrorCode.FENCED_LEADER_EPOCH:
        return False
    return any(partition.pre_vote for topic in request.topics for partition in topic.partitions)


def sender_id(api: str, request: Any) -> int | None:
    """The id of the node that sent the request, if the request has it."""
    try:
        return _SENDERS[api](request) if api in _SENDERS else None
    except IndexError:
        return None


def reason_for(node: "Node", api: str, request: Any, code: ErrorCode) -> str:
    """Why the machine or the controller answered a well-formed request with `code`."""
    reason = _REASONS.get(code)
    try:
        return "" if reason is None else reason(node, api, request)
    except IndexError:
        return ""


def _first_partition(request: Any) -> Any:
    return request.topics[0].partitions[0]


_SENDERS: dict[str, Callable[[Any], int]] = {
    "Vote": lambda request: int(_first_partition(request).replica_id),
    "BeginQuorumEpoch": lambda request: int(_first_partition(request).leader_id),
    "EndQuorumEpoch": lambda request: int(_first_partition(request).leader_id),
    "Fetch": lambda request: int(max(request.replica_id, request.replica_state.replica_id)),
    "FetchSnapshot": lambda request: int(request.replica_id),
    "BrokerRegistration": lambda request: int(request.broker_id),
    "BrokerHeartbeat": lambda request: int(request.broker_id),
    "AllocateProducerIds": lambda request: int(request.broker_id),
    "AlterPartition": lambda request: int(request.broker_id),
    "AssignReplicasToDirs": lambda request: int(request.broker_id),
    "ControllerRegistration": lambda request: int(request.controller_id),
    "UpdateRaftVoter": lambda request: int(request.voter_id),
}

_FROM_BROKERS = ("BrokerHeartbeat", "AllocateProducerIds", "AlterPartition", "AssignReplicasToDirs")
"""Requests with the epoch of the broker's registration."""

_EPOCHS: dict[str, Callable[[Any], int]] = {
    "Vote": lambda request: int(_first_partition(request).replica_epoch),
    "BeginQuorumEpoch": lambda request: int(_first_partition(request).leader_epoch),
    "EndQuorumEpoch": lambda request: int(_first_partition(request).leader_epoch),
    "Fetch": lambda request: int(_first_partition(request).current_leader_epoch),
    "FetchSnapshot": lambda request: int(_first_partition(request).current_leader_epoch),
    "UpdateRaftVoter": lambda request: int(request.current_leader_epoch),
}


def _other_epoch(node: "Node", api: str, request: Any) -> str:
    if api not in _EPOCHS:
        return ""
    asked = _EPOCHS[api](request)
    return f"its epoch is {asked}, and this node is in epoch {node.metadata.log.epoch}"


def _other_voter(node: "Node", api: str, request: Any) -> str:
    if api not in ("Vote", "BeginQuorumEpoch"):
        return ""
    key, meant = node.metadata.log.key, _first_partition(request)
    return (
        f"it is meant for voter {request.voter_id} with directory {uuids.to_text(meant.voter_directory_id)}, "
        f"and this is node {key.id} with directory {uuids.to_text(key.directory_id)}"
    )


def _other_cluster(node: "Node", api: str, request: Any) -> str:
    return f"this is a node of cluster {node.cluster_id}, not {getattr(request, 'cluster_id', None)}"


def _stale_registration(node: "Node", api: str, request: Any) -> str:
    if api not in _FROM_BROKERS:
        return ""
    broker = node.image.brokers.get(request.broker_id)
    registered = "" if broker is None else f", and the broker is registered with {broker.epoch}"
    return f"its broker epoch is {request.broker_epoch}{registered}"


def _not_registered(node: "Node", api: str, request: Any) -> str:
    return f"no broker {sender_id(api, request)} is registered"


def _duplicate(node: "Node", api: str, request: Any) -> str:
    broker = sender_id(api, request)
    return f"another process is broker {broker}, or was until its session ends (broker.session.timeout.ms)"


def _unsupported(node: "Node", api: str, request: Any) -> str:
    if api != "BrokerRegistration":
        return ""
    levels = ", ".join(f"{name} at {level}" for name, level in sorted(node.image.features.items()))
    return f"it does not support the features of this cluster ({levels})"


def _no_directories(node: "Node", api: str, request: Any) -> str:
    return "it names no log directories"


_REASONS: dict[ErrorCode, Callable[["Node", str, Any], str]] = {
    ErrorCode.FENCED_LEADER_EPOCH: _other_epoch,
    ErrorCode.UNKNOWN_LEADER_EPOCH: _other_epoch,
    ErrorCode.INVALID_VOTER_KEY: _other_voter,
    ErrorCode.INCONSISTENT_CLUSTER_ID: _other_cluster,
    ErrorCode.STALE_BROKER_EPOCH: _stale_registration,
    ErrorCode.BROKER_ID_NOT_REGISTERED: _not_registered,
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: _duplicate,
    ErrorCode.UNSUPPORTED_VERSION: _unsupported,
    ErrorCode.INVALID_REGISTRATION: _no_directories,
}
