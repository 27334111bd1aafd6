"""A small HTTP server for JSON: GET and HEAD, one thread for all connections, and a limit on everything.

A request must arrive, and its response must be read, within a time that does not restart with every byte. A client that
sends or reads slowly therefore holds a connection for some seconds, and no thread. If there are too many connections,
or too many bytes are waiting to be sent, the client gets a 503.
"""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from types import TracebackType
from typing import NamedTuple, Self

from quire.console.terminal import to_json
from quire_samples.inventory.json_response import JsonResponse

_log = logging.getLogger("quire.http")

AnswerPath = Callable[[str], JsonResponse]

TIMEOUT_S = 10.0
MOST_CONNECTIONS = 1_000
MOST_REQUEST_BYTES = 16 * 1024
MOST_UNSENT_BYTES = 256 * 1024 * 1024
"""The total size of all responses that clients have not read yet."""
_LINGERING_S = 1.0
BACKLOG = 128
"""Connections that may arrive at the same moment; any others are delayed by a second or more."""


class _Request(NamedTuple):
    method: str
    path: str
    keeps_connection: bool


class _BadRequestError(Exception):
    """The bytes received are not a request that this server accepts; the status gives the reason."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class JsonServer:
    """Serves what `answer` returns for a path, in its own thread, while the context is open."""

    def __init__(
        self,
        address: tuple[str, int],
        answer: AnswerPath,
        *,
        timeout_s: float = TIMEOUT_S,
        most_connections: int = MOST_CONNECTIONS,
        most_unsent_bytes: int = MOST_UNSENT_BYTES,
    ) -> None:
        """Starts listening; OSError if the address cannot be used."""
        self._answer = answer
        self._timeout_s = timeout_s
        self._most_connections = most_connections
        self._most_unsent_bytes = most_unsent_bytes
        self._connections = 0
        self._unsent_bytes = 0
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.create_server(address, family=family, backlog=BACKLOG)
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="quire-http", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._socket.getsockname()[:2]
        return host, port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(
            self._serve_connection, sock=self._socket, limit=MOST_REQUEST_BYTES, backlog=BACKLOG
        )
        await self._stopped.wait()
        server.close()
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()
        await asyncio.sleep(0)

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(0)
        self._connections += 1
        try:
            # A client may disconnect at any time; that is not an error.
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError, TimeoutError):
                if self._connections > self._most_connections:
                    await self._reject(reader, writer)
                else:
                    while await self._serve_request(reader, writer):
                        pass
        finally:
            self._connections -= 1
            writer.transport.abort()

    async def _reject(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._connections <= 2 * self._most_connections:
            await self._refuse(reader, writer, _too_busy())

    async def _refuse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, response: JsonResponse) -> None:
        """Sends a refusal, then reads on for a moment: closing with unread bytes would discard the response."""
        await self._send(writer, response, "GET", keeps_connection=False)
        writer.write_eof()
        async with asyncio.timeout(_LINGERING_S):
            while await reader.read(MOST_REQUEST_BYTES):
                pass

    async def _serve_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Returns whether the connection stays open for another request."""
        try:
            async with asyncio.timeout(self._timeout_s):
                request = await _read_request(reader)
        except _BadRequestError as error:
            await self._refuse(reader, writer, JsonResponse(error.status, {"error": str(error).lower()}))
            return False
        try:
            response = self._answer(request.path)
        except Exception:
            _log.exception("%r cannot be answered", request.path)
            reason = "this cannot be answered; the server's log says why"
            response = JsonResponse(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": reason})
        await self._send(writer, response, request.method, keeps_connection=request.keeps_connection)
        return request.keeps_connection

    async def _send(
        self, writer: asyncio.StreamWriter, response: JsonResponse, method: str, *, keeps_connection: bool
    ) -> None:
        data = _encoded(response, with_body=method != "HEAD", keeps_connection=keeps_connection)
        if self._unsent_bytes + len(data) > self._most_unsent_bytes:
            data = _encoded(_too_busy(), with_body=method != "HEAD", keeps_connection=keeps_connection)
        self._unsent_bytes += len(data)
        try:
            writer.write(data)
            async with asyncio.timeout(self._timeout_s):
                await writer.drain()
        finally:
            self._unsent_bytes -= len(data)


async def _read_request(reader: asyncio.StreamReader) -> _Request:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise _BadRequestError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None
    # Names may not be percent-encoded: `curl` sends UTF-8 as it is typed.
    first, *fields = head.decode(errors="replace").rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _BadRequestError(HTTPStatus.BAD_REQUEST)
    method, path, version = words
    if method not in ("GET", "HEAD"):
        raise _BadRequestError(HTTPStatus.NOT_IMPLEMENTED)
    headers = {
        name.strip().lower(): value.strip().lower() for name, _, value in (each.partition(":") for each in fields)
    }
    connection = headers.get("connection", "" if version != "HTTP/1.0" else "close")
    # The server does not read bodies, and would take one for the next request.
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    return _Request(method, path, "close" not in connection and not has_body)


def _encoded(response: JsonResponse, *, with_body: bool, keeps_connection: bool) -> bytes:
    status, content = response
    body = to_json(content).encode() + b"\n"
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        "Content-Type: application/json; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        f"Connection: {'keep-alive' if keeps_connection else 'close'}\r\n"
        "\r\n"
    )
    return head.encode() + (body if with_body else b"")


def _too_busy() -> JsonResponse:
    return JsonResponse(HTTPStatus.SERVICE_UNAVAILABLE, {"error": "too many requests at once; try again in a moment"})
