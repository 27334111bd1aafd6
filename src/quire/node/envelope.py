"""A client's request in an Envelope, as a broker passes it to the active controller (KIP-590).

The controller sees the client's principal, its address and the request as the client sent it. So it authorizes the
client, not the broker, and answers in the client's version. Principals have the form of Kafka's DefaultPrincipalData.
"""

from ipaddress import ip_address
from typing import Any, NamedTuple

from quire.node.context import Context, Principal
from quire.protocol import apis, codec
from quire.protocol.errors import ApiError, EncodeError, ErrorCode, ProtocolError
from quire.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from quire.protocol.messages.headers import RequestHeader, ResponseHeader
from quire.protocol.messages.principal import DefaultPrincipalData
from quire.protocol.schema import Message

FORWARDABLE = frozenset(
    apis.api_key(name)
    for name in (
        "CreateTopics",
        "DeleteTopics",
        "CreatePartitions",
        "AlterConfigs",
        "IncrementalAlterConfigs",
        "ElectLeaders",
        "UpdateFeatures",
        "DescribeQuorum",
        "UnregisterBroker",
        "AlterPartitionReassignments",
        "ListPartitionReassignments",
        "AddRaftVoter",
        "RemoveRaftVoter",
    )
)
"""What brokers pass on, of the APIs that Quire has. An Envelope is not among them."""

NO_ADDRESS = bytes(4)
_CORRELATION_ID = 0
_ADDRESS_SIZES = (4, 16)


class Forwarded(NamedTuple):
    """The request in an Envelope, not decoded yet: its body begins at `position` of `data`."""

    header: RequestHeader
    data: bytes
    position: int
    principal: Principal
    client_address: str


# --- The broker's side


def wrap(context: Context, request: Message) -> EnvelopeRequest:
    key, version = request.API_KEY, context.api_version
    header = RequestHeader(
        request_api_key=key,
        request_api_version=version,
        correlation_id=_CORRELATION_ID,
        client_id=context.client_id,
    )
    head = codec.encode(header, apis.request_header_version(key, version))
    return EnvelopeRequest(
        request_data=head + codec.encode(request, version),
        request_principal=_principal_bytes(context.principal),
        client_host_address=_address_bytes(context.client_address),
    )


def unwrap_response(context: Context, request: Message, response: EnvelopeResponse) -> Any:
    """The controller's answer to the client, or an ApiError if the Envelope itself was refused."""
    if response.error_code != ErrorCode.NONE or response.response_data is None:
        code = ErrorCode(response.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)
        return ApiError(code, f"the controller refused the request that this broker passed on: {code.name}")
    key, version, data = request.API_KEY, context.api_version, response.response_data
    _, position = codec.decoder(ResponseHeader, apis.response_header_version(key, version))(data, 0)
    return codec.decode(apis.response_class(key), data, version, position)


# --- The controller's side


def unwrap(request: EnvelopeRequest) -> Forwarded:
    """ApiError with Kafka's code if it is not what a broker passes on."""
    data = bytes(request.request_data)
    if len(data) < 4:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the envelope has no request in it")
    key = int.from_bytes(data[:2], "big", signed=True)
    version = int.from_bytes(data[2:4], "big", signed=True)
    if key not in FORWARDABLE:
        name = apis.API_NAMES.get(key, f"API {key}")
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} is not a request that brokers pass on")
    oldest, newest = apis.VALID_VERSIONS[key]
    if not oldest <= version <= newest:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"{apis.API_NAMES[key]} version {version} is not known")
    try:
        header, position = codec.decoder(RequestHeader, apis.request_header_version(key, version))(data, 0)
    except ProtocolError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"the header in the envelope cannot be read: {error}") from None
    return Forwarded(
        header, data, position, _principal(request.request_principal), _address(bytes(request.client_host_address))
    )


def wrap_response(forwarded: Forwarded, response: Message) -> EnvelopeResponse:
    key, version = forwarded.header.request_api_key, forwarded.header.request_api_version
    header = ResponseHeader(correlation_id=forwarded.header.correlation_id)
    try:
        body = codec.encode(response, version)
    except EncodeError as error:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from None
    return EnvelopeResponse(response_data=codec.encode(header, apis.response_header_version(key, version)) + body)


# --- Principals and addresses


def _principal_bytes(principal: Principal) -> bytes:
    version = DefaultPrincipalData.VERSIONS[1]
    data = DefaultPrincipalData(type=principal.kind, name=principal.name)
    return version.to_bytes(2, "big") + codec.encode(data, version)


def _principal(data: bytes | None) -> Principal:
    try:
        content = bytes(data or b"")
        version = int.from_bytes(content[:2], "big", signed=True)
        oldest, newest = DefaultPrincipalData.VERSIONS
        if len(content) < 2 or not oldest <= version <= newest:
            raise ProtocolError("it has no version that this node knows")
        decoded = codec.decode(DefaultPrincipalData, content, version, 2)
    except ProtocolError as error:
        raise ApiError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, f"the principal in the envelope cannot be read: {error}"
        ) from None
    return Principal(decoded.type, decoded.name)


def _address_bytes(peer: str) -> bytes:
    """`peer` is host:port; a host that is not an address, as in a simulation, cannot be passed on."""
    host = peer.rpartition(":")[0].removeprefix("[").removesuffix("]")
    try:
        return ip_address(host.partition("%")[0]).packed
    except ValueError:
        return NO_ADDRESS


def _address(data: bytes) -> str:
    if len(data) not in _ADDRESS_SIZES:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"the client's address in the envelope has {len(data)} bytes")
    return str(ip_address(data))
