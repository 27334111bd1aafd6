"""What the handlers of group requests share: caller, authorization, and running an operation in the group's shard."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from quire.coordinators.runtime.machine import Caller
from quire.coordinators.runtime.result import CoordinatorResult
from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from quire.coordinators.group.machine import GroupMachine
    from quire.node.node import Node

R = TypeVar("R")


def caller_of(context: Context) -> Caller:
    """The client as coordinators see it. Kafka writes the host with a slash before the address."""
    return Caller(context.client_id, "/" + context.client_address.rpartition(":")[0], context.api_version)


def run_in_group(
    node: "Node",
    context: Context,
    group_id: str,
    operation: Callable[["GroupMachine", int], CoordinatorResult[R]],
    needed: AclOperation = AclOperation.READ,
) -> Pending[R | ApiError]:
    """Runs `operation(machine, now_ms)` in the shard of the group; ApiError if this is not possible."""
    check_group(node, context, group_id, needed)
    return node.coordinators.groups.shard_for(group_id).run(operation)


def check_group(node: "Node", context: Context, group_id: str, needed: AclOperation) -> None:
    if not node.authorizer.allows(context, needed, Resource.GROUP, group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"using group {group_id} is not allowed")


def may_read_topic(node: "Node", context: Context, topic: str) -> bool:
    return node.authorizer.allows(context, AclOperation.READ, Resource.TOPIC, topic)
