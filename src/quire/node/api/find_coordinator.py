"""FindCoordinator: which node keeps a group's or a transaction's state.

This node has no coordinators yet. It says so to the client, and once for each connection in its own log, because many
clients keep that answer to themselves and try again for ever.
"""

import logging
from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from quire.node.node import Node

log = logging.getLogger("quire.requests")

MANY_KEYS = 4
"""From this version on a request asks for several keys, and the answer has an error for each instead of one."""


def handle(node: "Node", context: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if not context.was_told_of_coordinators:
        context.was_told_of_coordinators = True
        log.warning(
            "client %r at %s asked for a coordinator, and this node has none yet: consumer groups and transactions do "
            "not work, assign() and idempotent producers do",
            context.client_id,
            context.client_address,
        )
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
