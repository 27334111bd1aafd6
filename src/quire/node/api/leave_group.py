"""LeaveGroup: removes members from a classic group. Members send it for themselves, administrators for others.

Versions on broker listeners:
    0  the first version
    1  throttle time in the response
    2  a throttled client gets its response at once and waits by itself (KIP-219)
    3  several members, also by group.instance.id (KIP-345)
    4  flexible encoding
    5  the reason for leaving (KIP-800)
"""

from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.node.group_requests import caller_of, run_in_group
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: LeaveGroupRequest) -> Pending[LeaveGroupResponse | ApiError]:
    caller = caller_of(context)
    return run_in_group(
        node, context, request.group_id, lambda machine, now_ms: machine.leave_group(request, caller, now_ms)
    )


def refuse(request: LeaveGroupRequest, error: ApiError) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error.code)
