"""FindCoordinator: which node keeps a group's or a transaction's state.

The first to ask has the internal topic created, and is answered when it exists.
"""

from typing import TYPE_CHECKING, Any

from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from quire.coordinators.runtime.runtime import CoordinatorRuntime
    from quire.node.node import Node

MANY_KEYS = 4
"""From this version on a request asks for several keys, and the answer has an error for each instead of one."""

GROUP = 0
TRANSACTION = 1

_RESOURCES = {
    GROUP: (Resource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    TRANSACTION: (Resource.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}

Result = FindCoordinatorResponse | Pending[FindCoordinatorResponse | ApiError]


def handle(node: "Node", context: Context, request: FindCoordinatorRequest) -> Result:
    if context.api_version >= MANY_KEYS and not request.coordinator_keys:
        return FindCoordinatorResponse()  # There is nowhere to put an error, and nobody to ask for.
    if request.key_type not in _RESOURCES:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {request.key_type}")
    coordinators = node.coordinators
    runtime: CoordinatorRuntime[Any] = coordinators.groups if request.key_type == GROUP else coordinators.transactions
    if runtime.partition_count:
        return _answer(node, context, request, runtime)
    created = coordinators.create_topic(runtime.topic)

    def answer(error: ErrorCode) -> FindCoordinatorResponse | ApiError:
        if error is not ErrorCode.NONE:
            return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{runtime.topic} could not be created: {error.name}")
        return _answer(node, context, request, runtime)

    return created.then(answer)


def refuse(request: FindCoordinatorRequest, error: ApiError) -> FindCoordinatorResponse:
    if request.coordinator_keys:
        return FindCoordinatorResponse(coordinators=[_refused(key, error) for key in request.coordinator_keys])
    return _alone(_refused("", error))


def _answer(
    node: "Node", context: Context, request: FindCoordinatorRequest, runtime: "CoordinatorRuntime[Any]"
) -> FindCoordinatorResponse:
    if context.api_version < MANY_KEYS:
        return _alone(_find(node, context, request.key_type, request.key, runtime))
    return FindCoordinatorResponse(
        coordinators=[_find(node, context, request.key_type, key, runtime) for key in request.coordinator_keys]
    )


def _find(node: "Node", context: Context, key_type: int, key: str, runtime: "CoordinatorRuntime[Any]") -> Coordinator:
    resource, denied = _RESOURCES[key_type]
    if not node.authorizer.allows(context, Operation.DESCRIBE, resource, key):
        return _refused(key, ApiError(denied, f"asking for {key} is not allowed"))
    try:
        coordinator_id = node.coordinator_id(runtime, key)
    except ApiError as error:
        return _refused(key, error)
    for broker, host, port in node.live_brokers(context.listener):
        if broker.broker_id == coordinator_id:
            return Coordinator(key=key, node_id=coordinator_id, host=host, port=port)
    return _refused(
        key, ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator's node is not there: try again")
    )


def _refused(key: str, error: ApiError) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=error.code, error_message=error.message)


def _alone(found: Coordinator) -> FindCoordinatorResponse:
    """The answer to a request for one key: the fields of the first versions."""
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )
