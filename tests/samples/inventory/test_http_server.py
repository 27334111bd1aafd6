"""The HTTP server still answers other clients while some are slow, numerous or faulty."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from quire_samples.inventory.cli.http_server import MOST_REQUEST_BYTES, JsonServer
from quire_samples.inventory.json_response import JsonResponse

PATIENCE_S = 60.0


def answer(path: str) -> JsonResponse:
    if path == "/large":
        return JsonResponse(200, {"text": "x" * 20_000_000})
    if path == "/odd":
        return JsonResponse(200, {"item": "half of a pair: \ud800", "control": "\x9b"})
    if path == "/broken":
        raise RuntimeError("broken")
    return JsonResponse(200, {"path": path}) if path.startswith("/") else JsonResponse(404, {"error": path})


@contextmanager
def serving(
    *, timeout_s: float = PATIENCE_S, most_connections: int = 1_000, most_unsent_bytes: int = 1 << 30
) -> Iterator[JsonServer]:
    with JsonServer(
        ("127.0.0.1", 0),
        answer,
        timeout_s=timeout_s,
        most_connections=most_connections,
        most_unsent_bytes=most_unsent_bytes,
    ) as server:
        yield server


def connect(server: JsonServer) -> socket.socket:
    return socket.create_connection(server.address, timeout=PATIENCE_S)


def get(server: JsonServer, path: str = "/items", method: str = "GET") -> tuple[int, bytes]:
    client = http.client.HTTPConnection(*server.address, timeout=PATIENCE_S)
    try:
        client.request(method, path)
        response = client.getresponse()
        return response.status, response.read()
    finally:
        client.close()


def test_a_path_is_answered_as_json_and_a_connection_serves_many_requests() -> None:
    with serving() as server:
        client = http.client.HTTPConnection(*server.address, timeout=PATIENCE_S)
        client.connect()
        first = client.sock
        for number in range(3):
            client.request("GET", f"/items/{number}")
            response = client.getresponse()
            assert (response.status, json.loads(response.read())) == (200, {"path": f"/items/{number}"})
            assert response.headers["Content-Type"] == "application/json; charset=utf-8"
        assert client.sock is first
        client.close()
        assert get(server, method="HEAD") == (200, b"")


def test_text_that_cannot_be_stored_is_still_answered() -> None:
    with serving() as server:
        status, body = get(server, "/odd")
        assert status == 200
        assert json.loads(body) == {"item": "half of a pair: \ud800", "control": "\x9b"}


def test_a_failing_request_affects_no_other() -> None:
    with serving() as server:
        assert get(server, "/broken")[0] == 500
        assert get(server)[0] == 200


def test_clients_that_send_slowly_take_no_thread_and_block_no_other() -> None:
    with serving() as server, ExitStack() as stack:
        before = threading.active_count()
        for _ in range(300):
            slow = stack.enter_context(connect(server))
            slow.sendall(b"GET /items HT")
        assert get(server)[0] == 200
        assert threading.active_count() <= before


def test_a_request_has_to_arrive_in_time_however_often_a_byte_comes() -> None:
    with serving(timeout_s=0.3) as server, connect(server) as slow:
        slow.settimeout(0.05)
        for byte in b"GET /items HTTP/1.1\r\nX: " + b"x" * 200:
            try:
                slow.sendall(bytes([byte]))
                if slow.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("the connection stayed open")


def test_too_many_connections_are_refused_with_a_reason() -> None:
    with serving(most_connections=2) as server, ExitStack() as stack:
        for _ in range(2):
            slow = stack.enter_context(connect(server))
            slow.sendall(b"GET /items HTTP/1.1\r\nX:")
        status, body = get(server)
        assert (status, json.loads(body)) == (503, {"error": "too many requests at once; try again in a moment"})
    with serving(most_connections=2) as server:
        for _ in range(10):
            assert get(server)[0] == 200


def test_unread_answers_are_bounded_and_dropped() -> None:
    with serving(timeout_s=5.0, most_unsent_bytes=30_000_000) as server, connect(server) as lazy:
        lazy.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        lazy.recv(1)  # the response has been started
        assert get(server, "/large")[0] == 503
        assert get(server)[0] == 200
        received = 1
        lazy.settimeout(PATIENCE_S)
        while get(server, "/large")[0] == 503:
            pass  # until the other connection is closed
        try:
            while chunk := lazy.recv(1 << 20):
                received += len(chunk)
        except ConnectionError:
            pass
        assert received < 20_000_000


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\r\n\r\n", 400),
        (b"GET /items\r\n\r\n", 400),
        (b"GET /items FTP/1.0\r\n\r\n", 400),
        (b"\xff\xfe\x00 \x1b HTTP/1.1\r\n\r\n", 501),
        (b"POST /items HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 501),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 2 * MOST_REQUEST_BYTES, 431),
    ],
)
def test_an_invalid_request_is_refused(sent: bytes, status: int) -> None:
    with serving() as server:
        with connect(server) as client:
            client.sendall(sent)
            assert client.makefile("rb").readline().startswith(f"HTTP/1.1 {status} ".encode())
        assert get(server)[0] == 200


def test_a_body_is_not_taken_for_the_next_request() -> None:
    with serving() as server, connect(server) as client:
        client.sendall(b"GET /a HTTP/1.1\r\nContent-Length: 25\r\n\r\nGET /b HTTP/1.1\r\n\r\n")
        assert b'"/b"' not in client.makefile("rb").read()
