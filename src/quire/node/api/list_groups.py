"""ListGroups: the groups that this node coordinates and that pass the filters.

Versions on broker listeners:
    0  the first version
    1  throttle time in the response
    2  a throttled client gets its response at once and waits by itself (KIP-219)
    3  flexible encoding
    4  filter by state (KIP-518)
    5  filter by type: classic or consumer (KIP-848)
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.node.slices import Work, outcome
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: ListGroupsRequest) -> Work[ListGroupsResponse]:
    """Fails as a whole if one shard cannot answer: the client could not tell that the list is incomplete."""
    sees_all = node.authorizer.allows(context, AclOperation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)
    response = ListGroupsResponse()
    for shard in list(node.coordinators.groups):
        listed: Pending[list[ListedGroup] | ApiError] = shard.run(
            lambda machine, now_ms: machine.list_groups(request, now_ms)
        )
        for group in (yield from outcome(listed)):
            if sees_all or node.authorizer.allows(context, AclOperation.DESCRIBE, Resource.GROUP, group.group_id):
                response.groups.append(group)
            yield None
    return response


def refuse(request: ListGroupsRequest, error: ApiError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)
