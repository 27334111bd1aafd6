"""DeleteGroups: deletes groups that have no members, with all their committed offsets.

Versions on broker listeners:
    0  the first version
    1  a throttled client gets its response at once and waits by itself (KIP-219)
    2  flexible encoding
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import AclOperation
from quire.node.context import Context
from quire.node.group_requests import run_in_group
from quire.node.slices import Work, outcome
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: DeleteGroupsRequest) -> Work[DeleteGroupsResponse]:
    response = DeleteGroupsResponse()
    for group_id in dict.fromkeys(request.groups_names):
        response.results.append((yield from _delete(node, context, group_id)))
    return response


def refuse(request: DeleteGroupsRequest, error: ApiError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[_result(group_id, error) for group_id in request.groups_names])


def _delete(node: "Node", context: Context, group_id: str) -> Work[DeletableGroupResult]:
    """Deletes in steps, because a group can have more offsets than fit into one append."""
    done = False
    try:
        while not done:
            step: Pending[bool | ApiError] = run_in_group(
                node,
                context,
                group_id,
                lambda machine, now_ms: machine.delete_group(group_id, now_ms),
                AclOperation.DELETE,
            )
            done = yield from outcome(step)
    except ApiError as error:
        return _result(group_id, error)
    return _result(group_id)


def _result(group_id: str, error: ApiError | None = None) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=ErrorCode.NONE if error is None else error.code)
