"""SyncGroup: the leader hands in what each member of a classic group is to read, the others wait for it."""

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
