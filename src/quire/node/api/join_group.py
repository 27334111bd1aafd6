"""JoinGroup: joins a classic group, or stays in it during a rebalance.

The response is sent when all members have joined or the rebalance timeout has passed.

Versions on broker listeners:
    0  the first version
    1  rebalance timeout apart from the session timeout (KIP-62)
    2  throttle time in the response
    3  a throttled client gets its response at once and waits by itself (KIP-219)
    4  a new member gets its id first, and joins again with it (KIP-394)
    5  group.instance.id (KIP-345)
    6  flexible encoding
    7  protocol type in the response (KIP-559)
    8  the reason for joining (KIP-800)
    9  a restarted static leader skips the assignment (KIP-814)
"""

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
