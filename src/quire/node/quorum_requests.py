"""What all requests between controllers have in common: the checks, and how the machine's answer becomes a response."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.raft.messages import Message
from quire.raft.wire import LeaderEndpoint

if TYPE_CHECKING:
    from quire.node.node import Node

A = TypeVar("A")
R = TypeVar("R")


def check_sender(node: "Node", context: Context, cluster_id: str | None) -> None:
    """A request of a node of this cluster; a request without a cluster id may be one, too."""
    if not node.authorizer.allows(context, AclOperation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "only nodes of the cluster may send this")
    if cluster_id is not None and cluster_id != node.cluster_id:
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID, f"this is a node of cluster {node.cluster_id}, not {cluster_id}"
        )


def leader_for(node: "Node", version: int, first_version: int) -> LeaderEndpoint | None:
    """The leader's address, for responses of versions that have a field for it."""
    return node.metadata.log.leader_endpoint if version >= first_version else None


def answer(node: "Node", message: Message, kind: type[A], respond: Callable[[A], R]) -> Pending[R | ApiError]:
    """Hands a message to the machine; `respond` makes the response of its answer."""

    def finish(reply: object) -> R | ApiError:
        return reply if isinstance(reply, ApiError) else respond(cast(A, reply))

    return node.metadata.log.requested(message).then(finish)
