"""Heartbeat: keeps a member in its classic group. The response says whether a rebalance is in progress.

Versions on broker listeners:
    0  the first version
    1  throttle time in the response
    2  a throttled client gets its response at once and waits by itself (KIP-219)
    3  group.instance.id (KIP-345)
    4  flexible encoding
"""

from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.node.group_requests import caller_of, run_in_group
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: HeartbeatRequest) -> Pending[HeartbeatResponse | ApiError]:
    caller = caller_of(context)
    try:
        return run_in_group(
            node, context, request.group_id, lambda machine, now_ms: machine.heartbeat(request, caller, now_ms)
        )
    except ApiError as error:
        if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # No session expires while the coordinator replays its log, so the member need not do anything.
            return completed(HeartbeatResponse())
        raise


def refuse(request: HeartbeatRequest, error: ApiError) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error.code)
