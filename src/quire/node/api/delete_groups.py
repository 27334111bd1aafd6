"""DeleteGroups: groups without members go, with everything they have committed."""

from typing import TYPE_CHECKING

from quire.node.authorizer import Operation
from quire.node.context import Context
from quire.node.group_requests import run_in_group
from quire.pending import Pending, completed, gather
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: DeleteGroupsRequest) -> Pending[DeleteGroupsResponse]:
    names = list(dict.fromkeys(request.groups_names))
    deleted = [_delete(node, context, group_id) for group_id in names]
    return gather(deleted).then(lambda results: DeleteGroupsResponse(results=results))


def refuse(request: DeleteGroupsRequest, error: ApiError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[_result(group_id, error) for group_id in request.groups_names])


def _delete(node: "Node", context: Context, group_id: str) -> Pending[DeletableGroupResult]:
    try:
        answer = run_in_group(
            node, context, group_id, lambda machine, now_ms: machine.delete_group(group_id, now_ms), Operation.DELETE
        )
    except ApiError as error:
        return completed(_result(group_id, error))
    return answer.then(lambda error: _result(group_id, error))


def _result(group_id: str, error: ApiError | None) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=ErrorCode.NONE if error is None else error.code)
