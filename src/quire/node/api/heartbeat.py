"""Heartbeat: a member of a classic group is still there, and hears whether the group is changing."""

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
            # Nobody is thrown out before everything is replayed: the member need do nothing about it.
            return completed(HeartbeatResponse())
        raise


def refuse(request: HeartbeatRequest, error: ApiError) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error.code)
