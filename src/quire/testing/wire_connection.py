"""A connection that sends exactly what a test specifies: one socket, frames, no retries and no defaults.

    with WireConnection(cluster.bootstrap_servers) as connection:
        answer = connection.call(MetadataRequest(topics=None), 12, MetadataResponse)

It is for tests of what clients hide: single versions, invalid bytes, requests without waiting, responses that are never
read. All calls block, with a time-out.
"""

import itertools
import socket
import struct
from types import TracebackType
from typing import Self, TypeVar

from quire.protocol import apis
from quire.protocol.codec import decode, encode
from quire.protocol.messages.headers import RequestHeader
from quire.protocol.schema import Message

Response = TypeVar("Response", bound=Message)
_LENGTH = struct.Struct(">i")


class WireConnection:
    """Raises `ConnectionError` if the peer closes the connection, and `TimeoutError` if it does not respond in time."""

    def __init__(self, address: str, *, client_id: str | None = "wire", timeout_s: float = 30.0) -> None:
        host, _, port = address.split(",")[0].rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._correlation_ids = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def call(self, request: Message, version: int, response_class: type[Response]) -> Response:
        """Sends one request and reads its response."""
        correlation_id = self.send(request, version)
        return self.receive(response_class, version, correlation_id)

    def send(self, request: Message, version: int) -> int:
        """Sends one request; returns the correlation id for `receive`."""
        correlation_id = next(self._correlation_ids)
        self.socket.sendall(request_frame(request, version, correlation_id, self._client_id))
        return correlation_id

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self, response_class: type[Response], version: int, correlation_id: int) -> Response:
        """Reads one response, which must have this `correlation_id`."""
        body = self.receive_body(response_class.API_KEY, version, correlation_id)
        return decode(response_class, body, version)

    def receive_body(self, api_key: int, version: int, correlation_id: int) -> bytes:
        """Reads one response and checks its header; returns the bytes after the header."""
        frame = self.receive_frame()
        received_id = _LENGTH.unpack_from(frame)[0]
        assert received_id == correlation_id, f"expected the answer to request {correlation_id}, got {received_id}'s"
        if apis.response_header_version(api_key, version) == 0:
            return frame[4:]
        assert frame[4] == 0, "tagged fields in a response header"
        return frame[5:]

    def receive_frame(self) -> bytes:
        """Reads one frame, without its length."""
        return self._receive_exactly(_LENGTH.unpack(self._receive_exactly(4))[0])

    def is_closed_by_peer(self) -> bool:
        """Waits until the peer closes the connection; False if it responds or the time-out is over."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def _receive_exactly(self, size: int) -> bytes:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            received = self.socket.recv_into(view)
            if received == 0:
                raise ConnectionError("the other side closed the connection")
            view = view[received:]
        return bytes(data)


def request_frame(request: Message, version: int, correlation_id: int, client_id: str | None = "wire") -> bytes:
    """The bytes of a whole request, with its length in front."""
    header = RequestHeader(
        request_api_key=request.API_KEY,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    payload = encode(header, apis.request_header_version(request.API_KEY, version)) + encode(request, version)
    return _LENGTH.pack(len(payload)) + payload
