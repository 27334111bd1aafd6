"""ConsumerGroupHeartbeat: all that a member of a consumer group says and hears (KIP-848)."""

from typing import TYPE_CHECKING

from quire.metadata.features import GROUP_VERSION
from quire.node.context import Context
from quire.node.group_requests import caller_of, run_in_group
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(
    node: "Node", context: Context, request: ConsumerGroupHeartbeatRequest
) -> Pending[ConsumerGroupHeartbeatResponse | ApiError]:
    if not node.image.features.get(GROUP_VERSION):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            "this cluster keeps to classic groups: raise group.version to 1, or use group.protocol=classic",
        )
    caller = caller_of(context)
    return run_in_group(
        node,
        context,
        request.group_id,
        lambda machine, now_ms: machine.consumer_group_heartbeat(request, caller, now_ms),
    )


def refuse(request: ConsumerGroupHeartbeatRequest, error: ApiError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)
