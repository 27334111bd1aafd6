"""ListGroups: the groups that this node coordinates, as far as they pass the filters."""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, Operation, Resource
from quire.node.context import Context
from quire.pending import Pending, gather
from quire.protocol.errors import ApiError
from quire.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: ListGroupsRequest) -> Pending[ListGroupsResponse | ApiError]:
    parts = [
        shard.run(lambda machine, now_ms: machine.list_groups(request, now_ms)) for shard in node.coordinators.groups
    ]
    return gather(parts).then(lambda listed: _merged(node, context, listed))


def refuse(request: ListGroupsRequest, error: ApiError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)


def _merged(node: "Node", context: Context, parts: list[list[ListedGroup] | ApiError]) -> ListGroupsResponse | ApiError:
    """One list; an error where a part of it is missing, because nobody could tell what was left out."""
    sees_all = node.authorizer.allows(context, Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)
    merged = ListGroupsResponse()
    for part in parts:
        if isinstance(part, ApiError):
            return part
        merged.groups += (
            group
            for group in part
            if sees_all or node.authorizer.allows(context, Operation.DESCRIBE, Resource.GROUP, group.group_id)
        )
    return merged
