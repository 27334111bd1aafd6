"""FindCoordinator: which node keeps a group's or a transaction's state.

This node has no coordinators yet, and says so with the error that makes clients report it instead of hanging on a
coordinator that does not exist.
"""

from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from quire.node.node import Node


MANY_KEYS = 4
"""From this version on a request asks for several keys, and the answer has an error for each instead of one."""


def handle(node: "Node", context: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    error = ApiError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE, "this node has no group or transaction coordinator: use assign()"
    )
    return _for_each_key(request, error) if context.api_version >= MANY_KEYS else _for_one(error)


def refuse(request: FindCoordinatorRequest, error: ApiError) -> FindCoordinatorResponse:
    return _for_each_key(request, error) if request.coordinator_keys else _for_one(error)


def _for_one(error: ApiError) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(error_code=error.code, error_message=error.message, node_id=-1, port=-1)


def _for_each_key(request: FindCoordinatorRequest, error: ApiError) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, port=-1, error_code=error.code, error_message=error.message)
            for key in request.coordinator_keys
        ]
    )
