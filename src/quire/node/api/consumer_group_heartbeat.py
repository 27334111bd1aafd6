"""ConsumerGroupHeartbeat: the one request with which a member joins a consumer group, stays in it and leaves it.

The response has the partitions that the member may read.

Versions on broker listeners:
    0  the first version (KIP-848)
    1  subscription by a regular expression; the client chooses its member id (KIP-1082)
"""

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
            "this cluster has classic groups only: raise group.version to 1, or use group.protocol=classic",
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
