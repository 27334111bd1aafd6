"""JoinGroup: become, or stay, a member of a classic group; answered when all its members have said so."""

from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.node.group_requests import caller_of, run_in_group
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: JoinGroupRequest) -> Pending[JoinGroupResponse | ApiError]:
    caller = caller_of(context)
    return run_in_group(
        node, context, request.group_id, lambda machine, now_ms: machine.join_group(request, caller, now_ms)
    )


def refuse(request: JoinGroupRequest, error: ApiError) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error.code, member_id=request.member_id, protocol_name="")
