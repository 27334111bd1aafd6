"""SyncGroup: hands out the assignment of a classic group.

The group's leader sends the assignment of every member. Each member gets its own in the response.

Versions on broker listeners:
    0  the first version
    1  throttle time in the response
    2  a throttled client gets its response at once and waits by itself (KIP-219)
    3  group.instance.id (KIP-345)
    4  flexible encoding
    5  protocol type and name, which must match the group's (KIP-559)
"""

from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.node.group_requests import caller_of, run_in_group
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: SyncGroupRequest) -> Pending[SyncGroupResponse | ApiError]:
    caller = caller_of(context)
    return run_in_group(
        node, context, request.group_id, lambda machine, now_ms: machine.sync_group(request, caller, now_ms)
    )


def refuse(request: SyncGroupRequest, error: ApiError) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error.code)
