"""The bytes of one connection to one broker: frames, correlation ids and the versions that both sides support.

This module does not use sockets; `Link` passes the bytes between it and a transport. A new connection requests
ApiVersions first. A broker that does not support our version of that request returns error 35 in version 0 with its
own range, and the request is sent again in a version that it supports (KIP-511). After that every request uses the
highest version that both sides support. Responses come in the order of the requests.
"""

import struct
from collections import deque
from typing import NamedTuple

from quire import __version__
from quire.client.errors import ClientError, UnsupportedError
from quire.client.wrong_server import FIRST_CORRELATION_ID, FIRST_FRAME_BYTES_MAX, WrongServerError, what_answered
from quire.protocol import apis
from quire.protocol.codec import decode, decoder, encode
from quire.protocol.errors import ErrorCode, ProtocolError
from quire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from quire.protocol.messages.headers import RequestHeader, ResponseHeader
from quire.protocol.schema import Message

ROOM_BYTES = 64 * 1024
FRAME_BYTES_MAX = 512 * 1024 * 1024

Versions = tuple[int, int]  # the oldest and the newest version that can express a request

_LENGTH = struct.Struct(">i")


class CorrelatedResponse(NamedTuple):
    correlation_id: int
    message: Message


class _SentRequest(NamedTuple):
    correlation_id: int
    api_key: int
    version: int


class Connection:
    __slots__ = (
        "_client_id",
        "_correlation_id",
        "_filled",
        "_in_flight",
        "_room",
        "_software_version",
        "features",
        "outgoing",
        "versions",
    )

    def __init__(self, client_id: str, software_version: str = __version__) -> None:
        self._client_id = client_id
        self._software_version = software_version
        self._correlation_id = FIRST_CORRELATION_ID
        self._in_flight: deque[_SentRequest] = deque()
        self._room = bytearray(ROOM_BYTES)
        self._filled = 0
        self.outgoing: list[bytes] = []
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: ApiVersionsResponse | None = None

    def start(self) -> None:
        """Sends the first request, which asks for the broker's versions."""
        self._ask_versions(apis.VALID_VERSIONS[ApiVersionsRequest.API_KEY][1])

    @property
    def ready(self) -> bool:
        return self.features is not None

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def version_for(self, api_key: int, versions: Versions | None = None) -> int:
        """The highest version of an API that both sides support; `versions` limits those of the client."""
        assert self.ready, "a version was requested before the broker's versions are known"
        ours, theirs = versions or apis.VALID_VERSIONS[api_key], self.versions.get(api_key)
        if theirs is None:
            raise UnsupportedError(f"the broker does not support {apis.API_NAMES[api_key]}")
        version = min(ours[1], theirs[1])
        if version < max(ours[0], theirs[0]):
            raise UnsupportedError(
                f"the broker supports {apis.API_NAMES[api_key]} {theirs[0]} to {theirs[1]}, "
                f"this client {ours[0]} to {ours[1]}"
            )
        return version

    def send(self, request: Message, *, answered: bool = True, versions: Versions | None = None) -> int:
        """Adds a request to `outgoing` and returns its correlation id; `answered=False` for Produce with acks=0."""
        return self._frame(request, self.version_for(request.API_KEY, versions), answered)

    def buffer(self) -> memoryview:
        """Memory for the next bytes. A large frame has memory of its own, which its records then use."""
        return memoryview(self._room)[self._filled :]

    def received(self, size: int) -> list[CorrelatedResponse]:
        """The last `buffer` holds `size` bytes; returns the responses that are complete now, oldest first."""
        self._filled += size
        answers: list[CorrelatedResponse] = []
        position = 0
        while self._filled - position >= 4:
            (length,) = _LENGTH.unpack_from(self._room, position)
            if not 4 <= length <= FRAME_BYTES_MAX or (length > FIRST_FRAME_BYTES_MAX and not self.ready):
                if not self.ready:
                    raise WrongServerError(what_answered(bytes(memoryview(self._room)[position : self._filled])))
                raise ProtocolError(f"a frame of {length} bytes came; is this a Kafka port without TLS?")
            end = position + 4 + length
            if self._filled < end:
                break
            frame = self._cut(position + 4, end)
            position = end
            self._take(frame, answers)
        self._make_room(position)
        return answers

    def _cut(self, start: int, end: int) -> memoryview:
        """One frame. If it fills the whole memory, it takes the memory over, so that records are not copied."""
        if start == 4 and end == len(self._room) and end > ROOM_BYTES:
            return memoryview(self._room)[start:]
        return memoryview(bytes(memoryview(self._room)[start:end]))

    def _make_room(self, consumed: int) -> None:
        """Drops the consumed bytes, and fits the memory to the frame that has begun."""
        held = self._filled - consumed
        needed = ROOM_BYTES
        if held >= 4:
            needed = max(ROOM_BYTES, 4 + _LENGTH.unpack_from(self._room, consumed)[0])
        if needed != len(self._room):
            room = bytearray(needed)
            room[:held] = memoryview(self._room)[consumed : self._filled]
            self._room = room
        elif consumed:
            self._room[:held] = self._room[consumed : self._filled]
        self._filled = held

    def _take(self, frame: memoryview, answers: list[CorrelatedResponse]) -> None:
        if not self._in_flight:
            raise ProtocolError("the broker sent a response without a request")
        sent = self._in_flight.popleft()
        header_version = apis.response_header_version(sent.api_key, sent.version)
        header, position = decoder(ResponseHeader, header_version)(frame, 0)
        if header.correlation_id != sent.correlation_id:
            raise ProtocolError(f"a response came for request {header.correlation_id}, not {sent.correlation_id}")
        if sent.api_key == ApiVersionsRequest.API_KEY and not self.ready:
            self._negotiate(frame, position, sent)
            return
        message = decode(apis.response_class(sent.api_key), frame, sent.version, position)
        answers.append(CorrelatedResponse(sent.correlation_id, message))

    def _negotiate(self, frame: memoryview, position: int, sent: _SentRequest) -> None:
        error = ErrorCode(int.from_bytes(frame[position : position + 2], "big", signed=True))
        # The body of this error is always in version 0, so that any client can read it.
        version = 0 if error == ErrorCode.UNSUPPORTED_VERSION else sent.version
        response: ApiVersionsResponse = decode(ApiVersionsResponse, frame, version, position)
        ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        if error == ErrorCode.UNSUPPORTED_VERSION and sent.version > 0:
            _, newest = ranges.get(ApiVersionsRequest.API_KEY, (0, 0))
            self._ask_versions(min(newest, sent.version - 1))
            return
        if error != ErrorCode.NONE:
            raise ClientError(f"the broker refused the ApiVersions request: {error.name}")
        self.versions = ranges
        self.features = response

    def _ask_versions(self, version: int) -> None:
        request = ApiVersionsRequest(client_software_name="quire", client_software_version=self._software_version)
        self._frame(request, version, answered=True)

    def _frame(self, request: Message, version: int, answered: bool) -> int:
        correlation_id = self._correlation_id
        self._correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=self._client_id,
        )
        head = encode(header, apis.request_header_version(request.API_KEY, version))
        body = encode(request, version)
        self.outgoing.append(_LENGTH.pack(len(head) + len(body)) + head)
        self.outgoing.append(body)
        if answered:
            self._in_flight.append(_SentRequest(correlation_id, request.API_KEY, version))
        return correlation_id
