"""DeleteGroups: groups without members go, with everything they have committed."""

from typing import TYPE_CHECKING

from quire.node.authorizer import Operation
from quire.node.context import Context
from quire.node.group_requests import run_in_group
from quire.pending import Pending, gather
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
    """Step by step, and in between others have their turn: a group can have more offsets than fit into one append."""
    result: Pending[DeletableGroupResult] = Pending()

    def next_step() -> None:
        try:
            answer = run_in_group(
                node,
                context,
                group_id,
                lambda machine, now_ms: machine.delete_group(group_id, now_ms),
                Operation.DELETE,
            )
        except ApiError as error:
            result.complete_once(_result(group_id, error))
        else:
            answer.when_done(stepped)

    def stepped(outcome: bool | ApiError) -> None:
        if isinstance(outcome, ApiError):
            result.complete_once(_result(group_id, outcome))
        elif outcome:
            result.complete_once(_result(group_id))
        else:
            node.clock.call_soon(next_step)

    next_step()
    return result


def _result(group_id: str, error: ApiError | None = None) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=ErrorCode.NONE if error is None else error.code)
