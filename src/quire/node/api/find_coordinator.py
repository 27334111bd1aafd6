"""FindCoordinator: the broker that coordinates a group or a transactional id.

The first request creates the internal topic, and its response is sent when the topic exists.

Versions on broker listeners:
    0  the first version: groups only
    1  transactional ids, error messages, throttle time (KIP-98)
    2  a throttled client gets its response at once and waits by itself (KIP-219)
    3  flexible encoding
    4  several keys in one request (KIP-699)
    5  the client knows TRANSACTION_ABORTABLE (KIP-890)
    6  share groups as a type of key (KIP-932), which this node refuses
"""

from typing import TYPE_CHECKING, Any

from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from quire.coordinators.runtime.runtime import CoordinatorRuntime
    from quire.node.node import Node

MANY_KEYS = 4
"""The first version in which a request names several keys, and each key has its own error."""

GROUP = 0
TRANSACTION = 1

_RESOURCES = {
    GROUP: (Resource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    TRANSACTION: (Resource.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


def handle(node: "Node", context: Context, request: FindCoordinatorRequest) -> Work[FindCoordinatorResponse]:
    if context.api_version >= MANY_KEYS and not request.coordinator_keys:
        return FindCoordinatorResponse()  # Without keys, the response has no place for an error.
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
    """`addresses` has the host and port of each live broker, by node id."""
    resource, denied = _RESOURCES[key_type]
    if not node.authorizer.allows(context, AclOperation.DESCRIBE, resource, key):
        return _refused(key, ApiError(denied, f"describing {key} is not allowed"))
    try:
        coordinator_id = node.coordinator_id(runtime, key)
    except ApiError as error:
        return _refused(key, error)
    address = addresses.get(coordinator_id)
    if address is None:
        gone = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator is not available: try again")
        return _refused(key, gone)
    return Coordinator(key=key, node_id=coordinator_id, host=address[0], port=address[1])


def _refused(key: str, error: ApiError) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=error.code, error_message=error.message)


def _alone(found: Coordinator) -> FindCoordinatorResponse:
    """The response in versions before 4, which have one key."""
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )
