"""Envelope: a broker passes on the request of a client, which only the active controller may decide (KIP-590).

Only nodes send it. The request in it is handled as if the client had sent it here: its principal is authorized, and the
answer is in its version. INVALID_REQUEST for an Envelope in an Envelope, or any other API that brokers do not pass on.

Versions on controller listeners:
    0  the first version (KIP-590)
"""

from types import GeneratorType
from typing import TYPE_CHECKING, Any

from quire.node.authorizer import check_cluster_action
from quire.node.context import Context
from quire.node.controller_request import says_not_controller
from quire.node.envelope import Forwarded, unwrap, wrap_response
from quire.node.slices import Work
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode, ProtocolError
from quire.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse

if TYPE_CHECKING:
    from quire.node.dispatch import Route
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: EnvelopeRequest) -> Work[EnvelopeResponse]:
    check_cluster_action(node.authorizer, context)
    forwarded = unwrap(request)
    header = forwarded.header
    route = node.dispatcher.controller_route(header.request_api_key, header.request_api_version)
    if route is None:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"version {header.request_api_version} is not served here")
    response = yield from _handle_forwarded(node, context, route, forwarded)
    if says_not_controller(response):
        raise ApiError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")
    return wrap_response(forwarded, response)


def _handle_forwarded(node: "Node", context: Context, route: "Route", forwarded: Forwarded) -> Work[Any]:
    try:
        request, _ = route.decode(forwarded.data, forwarded.position)
    except ProtocolError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{route.name} in the envelope cannot be read: {error}") from None
    sender = Context(
        context.listener,
        forwarded.principal,
        forwarded.header.client_id or "",
        forwarded.client_address,
        route.version,
    )
    try:
        response = route.handle(node, sender, request)
        if response.__class__ is GeneratorType:
            response = yield from response
        elif isinstance(response, Pending):
            response = yield response
    except ApiError as error:
        return route.refuse(request, error)
    return route.refuse(request, response) if isinstance(response, ApiError) else response


def refuse(request: EnvelopeRequest, error: ApiError) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=error.code)
