"""FindCoordinator: which node keeps a group's or a transaction's state.

The first to ask has the internal topic created, and is answered when it exists.
"""

from typing import TYPE_CHECKING, Any

from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.node.slices import Work
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


def handle(node: "Node", context: Context, request: FindCoordinatorRequest) -> Work[FindCoordinatorResponse]:
    if context.api_version >= MANY_KEYS and not request.coordinator_keys:
        return FindCoordinatorResponse()  # There is nowhere to put an error, and nobody to ask for.
    if request.key_type not in _RESOURCES:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {request.key_type}")
    coordinators = node.coordinators
    runtime: CoordinatorRuntime[Any] = coordinators.groups if request.key_type == GROUP else coordinators.transactions
    if not runtime.partition_count:
        error: ErrorCode = yield coordinators.create_topic(runtime.topic)
        if error is not ErrorCode.NONE:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{runtime.topic} could not be created: {error.name}")
    addresses = {broker.broker_id: (host, port) for broker, host, port in node.live_brokers(context.listener)}
    if context.api_version < MANY_KEYS:
        return _alone(_find(node, context, request.key_type, request.key, runtime, addresses))
    response = FindCoordinatorResponse()
    for key in dict.fromkeys(request.coordinator_keys):
        response.coordinators.append(_find(node, context, request.key_type, key, runtime, addresses))
        yield None
    return response


def refuse(request: FindCoordinatorRequest, error: ApiError) -> FindCoordinatorResponse:
    if request.coordinator_keys:
        return FindCoordinatorResponse(coordinators=[_refused(key, error) for key in request.coordinator_keys])
    return _alone(_refused("", error))


def _find(
    node: "Node",
    context: Context,
    key_type: int,
    key: str,
    runtime: "CoordinatorRuntime[Any]",
    addresses: dict[int, tuple[str, int]],
) -> Coordinator:
    """`addresses` are those of the live brokers, by their ids."""
    resource, denied = _RESOURCES[key_type]
    if not node.authorizer.allows(context, Operation.DESCRIBE, resource, key):
        return _refused(key, ApiError(denied, f"asking for {key} is not allowed"))
    try:
        coordinator_id = node.coordinator_id(runtime, key)
    except ApiError as error:
        return _refused(key, error)
    address = addresses.get(coordinator_id)
    if address is None:
        gone = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator's node is not there: try again")
        return _refused(key, gone)
    return Coordinator(key=key, node_id=coordinator_id, host=address[0], port=address[1])


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
