"""A real TCP proxy between Kafka clients and a node, for failures of the network that a broker cannot simulate.

    with Proxy(cluster.bootstrap_servers) as proxy:
        producer = Producer({"bootstrap.servers": proxy.address, ...})
        proxy.lose_answers("Produce", 5)

It forwards frame by frame, and matches responses to requests. It replaces broker addresses in responses by its own, so
that clients always connect through it. It has two threads per connection: simple, and fast enough for tests.
"""

import contextlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self

from quire.protocol import apis
from quire.protocol.codec import decode, encode

_LENGTH = struct.Struct(">i")
_REQUEST_START = struct.Struct(">hhi")
_NAMES_BROKERS = frozenset({"Metadata", "FindCoordinator", "DescribeCluster"})


class Proxy:
    """Forwards to the node at `upstream` ("host:port"); clients use `address`.

    `requests`, `answers` (those that were forwarded) and `lost` count by API; `connections` counts those accepted.
    """

    def __init__(self, upstream: str) -> None:
        host, _, port = upstream.split(",")[0].rpartition(":")
        self._upstream = (host.strip("[]"), int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._changed = threading.Condition()
        self._links: list[_Link] = []
        self._to_lose: Counter[str] = Counter()
        self._held: set[str] = set()
        self._closed = False
        self.requests: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.connections = 0
        threading.Thread(target=self._accept, name="proxy accept", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def lose_answers(self, api: str, count: int) -> None:
        """Drops the next `count` responses to `api`, and closes the connection after the last one.

        The node has then carried out the requests, and the client does not know it.
        """
        _check_api(api)
        with self._changed:
            self._to_lose[api] += count

    def hold_answers(self, api: str) -> None:
        """Holds responses to `api`, and all later ones on the same connections, until `release_answers`."""
        _check_api(api)
        with self._changed:
            self._held.add(api)

    def release_answers(self) -> None:
        """Forwards what `hold_answers` has held, and holds nothing from now on."""
        with self._changed:
            self._held.clear()
            self._changed.notify_all()

    def cut(self) -> None:
        """Closes every connection; new ones are accepted."""
        with self._changed:
            links, self._links = self._links, []
        for link in links:
            link.close()

    def wait_until(self, condition: Callable[["Proxy"], bool], timeout_s: float = 30.0) -> None:
        """Waits for a condition on the counters: `proxy.wait_until(lambda it: it.lost["Produce"] >= 5)`."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self), timeout_s):
                raise TimeoutError(
                    f"waited {timeout_s:g} s; requests {dict(self.requests)}, answers {dict(self.answers)}, "
                    f"lost {dict(self.lost)}, connections {self.connections}"
                )

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._held.clear()
            self._changed.notify_all()
        with contextlib.suppress(OSError):  # not connected, but this is what wakes a blocked accept
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                upstream = socket.create_connection(self._upstream, 10)
            except OSError:
                client.close()
                continue
            upstream.settimeout(None)
            link = _Link(self, client, upstream)
            with self._changed:
                self._links.append(link)
                self.connections += 1
                self._changed.notify_all()
            link.start()

    def _count_request(self, api: str) -> None:
        with self._changed:
            self.requests[api] += 1
            self._changed.notify_all()

    def _judge_answer(self, api: str) -> tuple[bool, bool]:
        """Waits while the response is held; returns (forward it, close the connection after it)."""
        with self._changed:
            self._changed.wait_for(lambda: api not in self._held)
            lose = self._to_lose[api] > 0
            if lose:
                self._to_lose[api] -= 1
                self.lost[api] += 1
            else:
                self.answers[api] += 1
            self._changed.notify_all()
            return not lose, lose and self._to_lose[api] == 0


class _Link:
    """One client's connection, and the connection to the node that belongs to it."""

    def __init__(self, proxy: Proxy, client: socket.socket, upstream: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._upstream = upstream
        self._asked: dict[int, tuple[str, int, int]] = {}
        for end in (client, upstream):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        for pump in (self._pump_requests, self._pump_answers):
            threading.Thread(target=self._run, args=(pump,), name="proxy link", daemon=True).start()

    def close(self) -> None:
        for end in (self._client, self._upstream):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _run(self, pump: Callable[[], None]) -> None:
        with contextlib.suppress(OSError):
            pump()
        self.close()

    def _pump_requests(self) -> None:
        while (frame := _read_frame(self._client)) is not None:
            api_key, version, correlation_id = _REQUEST_START.unpack_from(frame)
            api = apis.API_NAMES.get(api_key, str(api_key))
            self._asked[correlation_id] = (api, api_key, version)
            # Before it is sent, so that the request is counted when the client has the response.
            self._proxy._count_request(api)
            self._upstream.sendall(_LENGTH.pack(len(frame)) + frame)

    def _pump_answers(self) -> None:
        while (frame := _read_frame(self._upstream)) is not None:
            api, api_key, version = self._asked.pop(_LENGTH.unpack_from(frame)[0])
            forward, cut = self._proxy._judge_answer(api)
            if api in _NAMES_BROKERS:
                frame = _with_address(frame, api_key, version, "127.0.0.1", self._proxy.port)
            if forward:
                self._client.sendall(_LENGTH.pack(len(frame)) + frame)
            if cut:
                return


def _check_api(api: str) -> None:
    if api not in apis.API_NAMES.values():
        raise ValueError(f"there is no API {api!r}; the names are those of Kafka's protocol, such as Produce or Fetch")


def _read_frame(source: socket.socket) -> bytes | None:
    start = _read_exactly(source, 4)
    return None if start is None else _read_exactly(source, _LENGTH.unpack(start)[0])


def _read_exactly(source: socket.socket, size: int) -> bytes | None:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        received = source.recv_into(view)
        if received == 0:
            return None
        view = view[received:]
    return bytes(data)


def _with_address(frame: bytes, api_key: int, version: int, host: str, port: int) -> bytes:
    """The response with the addresses of all brokers replaced."""
    body_start = 4 + apis.response_header_version(api_key, version)  # a version 1 header ends with an empty tag section
    answer = decode(apis.response_class(api_key), frame, version, body_start)
    for named in (answer, *getattr(answer, "brokers", ()), *getattr(answer, "coordinators", ())):
        if getattr(named, "port", -1) > 0:
            named.host, named.port = host, port
    return frame[:body_start] + encode(answer, version)
