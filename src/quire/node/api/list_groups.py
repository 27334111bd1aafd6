"""ListGroups: the groups that this node coordinates, as far as they pass the filters."""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, Operation, Resource
from quire.node.context import Context
from quire.node.slices import Work, outcome
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: ListGroupsRequest) -> Work[ListGroupsResponse]:
    """An error where a part of the list is missing, because the client could not tell what was left out."""
    sees_all = node.authorizer.allows(context, Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)
    response = ListGroupsResponse()
    for shard in list(node.coordinators.groups):
        listed: Pending[list[ListedGroup] | ApiError] = shard.run(
            lambda machine, now_ms: machine.list_groups(request, now_ms)
        )
        for group in (yield from outcome(listed)):
            if sees_all or node.authorizer.allows(context, Operation.DESCRIBE, Resource.GROUP, group.group_id):
                response.groups.append(group)
            yield None
    return response


def refuse(request: ListGroupsRequest, error: ApiError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)
