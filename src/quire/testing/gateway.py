"""The network between the nodes of a test cluster and to its clients: one process with a TCP proxy per listener.

    python -m quire.testing.gateway NODE:KIND:PORT ...       KIND is `clients` or `nodes`, PORT where the node listens

It prints the port of each proxy in one line, in the given order, and then executes lines from standard input, each of
which it answers with `ok`. It ends with its standard input.

    up NODE          the proxies of a node accept connections as soon as the node listens
    down NODE        they refuse connections
    cut FROM TO      nothing that FROM sends reaches TO; both are node ids or `clients`
    heal             ends all cuts

A cut looks like a network that loses all packets: connections stay open, and everything arrives after `heal`. A node
that is cut off and down does not refuse connections, because a refusal would have to cross the same network. Only nodes
use proxies of the kind `nodes`; the client id of the first request on a connection names the node.
"""

import asyncio
import contextlib
import errno
import os
import re
import signal
import socket
import sys
from typing import cast

from quire.cli.line_splitter import LineSplitter
from quire.real.loop import new_event_loop

CLIENTS = "clients"
NODES = "nodes"
POLL_S = 0.005
_HEADER_BYTES = 14
"""Of a request up to its client id: length, API key, version, correlation id, and the length of the client id."""


class Network:
    """All proxies, and what is cut."""

    def __init__(self) -> None:
        self.gates: list[Gate] = []
        self._cuts: set[tuple[str, str]] = set()

    def is_cut(self, sender: str, receiver: str) -> bool:
        return (sender, receiver) in self._cuts

    def is_isolated(self, node: str) -> bool:
        return any(node in cut for cut in self._cuts)

    def carry_out(self, line: str) -> None:
        match line.split():
            case ["up", node]:
                for gate in self._of(node):
                    gate.wait_for_node()
            case ["down", node]:
                for gate in self._of(node):
                    gate.node_is_down()
            case ["cut", sender, receiver]:
                self._cuts.add((sender, receiver))
            case ["heal"]:
                self._cuts.clear()
            case _:
                raise ValueError(f"{line!r} is neither up, down, cut nor heal")
        for gate in self.gates:
            gate.cuts_changed()

    def _of(self, node: str) -> list["Gate"]:
        return [gate for gate in self.gates if gate.node == node]


class Gate:
    """The proxy of one listener. Its port stays the same; it listens while its node does."""

    def __init__(self, network: Network, node: str, kind: str, upstream_port: int) -> None:
        self.network = network
        self.node = node
        self.kind = kind
        self.links: set[Link] = set()
        self.is_up = False
        """Whether the node listens."""
        self._upstream_port = upstream_port
        # Keeps the port for this proxy while it does not listen.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port: int = self._reserved.getsockname()[1]
        self._listening: socket.socket | None = None
        self._polling: asyncio.Task[None] | None = None

    def wait_for_node(self) -> None:
        """Listens as soon as the node does."""
        if not self.is_up and self._polling is None:
            self._polling = asyncio.get_running_loop().create_task(self._poll())

    async def _poll(self) -> None:
        while not self._node_listens():
            await asyncio.sleep(POLL_S)
        self._polling = None
        self.is_up = True
        self._listen_or_not()

    def node_is_down(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            self._polling = None
        self.is_up = False
        self._listen_or_not()

    def cuts_changed(self) -> None:
        self._listen_or_not()
        for link in list(self.links):
            link.forward()

    def lost_node(self) -> None:
        """A connection to the node has ended: if the node has, connections are refused from now on."""
        if self.is_up and not self._node_listens():
            self.node_is_down()
            self.wait_for_node()

    def _node_listens(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1.0)  # a paused node accepts; only a full queue would take longer
            return probe.connect_ex(("127.0.0.1", self._upstream_port)) != errno.ECONNREFUSED

    def _listen_or_not(self) -> None:
        wanted = self.is_up or self.network.is_isolated(self.node)
        loop = asyncio.get_running_loop()
        if wanted and self._listening is None:
            self._listening = socket.create_server(("127.0.0.1", self.port), backlog=128)
            self._listening.setblocking(False)
            loop.add_reader(self._listening, self._accept)
        elif not wanted and self._listening is not None:
            loop.remove_reader(self._listening)
            self._listening.close()
            self._listening = None

    def _accept(self) -> None:
        assert self._listening is not None
        with contextlib.suppress(BlockingIOError, ConnectionError):
            connection, _ = self._listening.accept()
            link = Link(self)
            self.links.add(link)
            link.adopt(connection)

    async def connect(self, side: "Side") -> None:
        await asyncio.get_running_loop().create_connection(lambda: side, "127.0.0.1", self._upstream_port)


class Link:
    """One connection through a proxy: from `source`, a node id or `clients`, to the node."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.source: str | None = CLIENTS if gate.kind == CLIENTS else None
        self.client = Side(self)
        self.upstream = Side(self)
        self._connecting: asyncio.Task[None] | None = None
        self._adopting: asyncio.Task[object] | None = None

    def adopt(self, connection: socket.socket) -> None:
        """Takes a connection that the proxy has accepted."""
        loop = asyncio.get_running_loop()
        self._adopting = loop.create_task(loop.connect_accepted_socket(lambda: self.client, connection))

    def received(self, side: "Side") -> None:
        if side is self.client and self.source is None:
            self.source = sender_of(side.unsent)
        self.forward()

    def forward(self) -> None:
        """Forwards in the directions that are not cut, and stops reading in the others."""
        if self.source is None:
            return
        network, node = self.gate.network, self.gate.node
        inwards = not network.is_cut(self.source, node)
        outwards = not network.is_cut(node, self.source)
        if inwards and self.client.unsent and self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
        self.client.forward_to(self.upstream, inwards)
        self.upstream.forward_to(self.client, outwards)

    async def _connect(self) -> None:
        try:
            await self.gate.connect(self.upstream)
        except OSError:
            self.gate.lost_node()
            self.close()

    def closed(self, side: "Side") -> None:
        if side is self.upstream:
            self.gate.lost_node()  # before the other end can notice, and try to connect again
        self.close()

    def close(self) -> None:
        self.gate.links.discard(self)
        for side in (self.client, self.upstream):
            if side.transport is not None:
                side.transport.close()


class Side(asyncio.Protocol):
    """One of the two connections of a link."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._reads = True
        self.transport: asyncio.Transport | None = None
        self.unsent = bytearray()
        """What was received and is not forwarded yet."""
        self.is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # uvloop begins to read after this call, and forgets a pause that came before.
        asyncio.get_running_loop().call_soon(self._link.forward)

    def data_received(self, data: bytes) -> None:
        self.unsent += data
        self._link.received(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._link.closed(self)

    def pause_writing(self) -> None:
        self.is_full = True
        self._link.forward()

    def resume_writing(self) -> None:
        self.is_full = False
        self._link.forward()

    def forward_to(self, other: "Side", allowed: bool) -> None:
        """Sends on what was received and reads more, if that is allowed; otherwise keeps it and reads no more."""
        if allowed and self.unsent and other.is_open:
            assert other.transport is not None
            unsent, self.unsent = self.unsent, bytearray()
            other.transport.write(unsent)
        self._read_while(allowed and not other.is_full)

    @property
    def is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def _read_while(self, wanted: bool) -> None:
        if not self.is_open or wanted is self._reads:
            return
        assert self.transport is not None
        self._reads = wanted
        if wanted:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()


def sender_of(start: bytes | bytearray) -> str | None:
    """The node id in the client id of a request, which is its first number; None if too little has come yet."""
    if len(start) < _HEADER_BYTES:
        return None
    size = int.from_bytes(start[12:14], "big", signed=True)
    if len(start) < _HEADER_BYTES + size:
        return None
    number = re.search(rb"\d+", start[14 : 14 + max(0, size)])
    return number[0].decode() if number else "unknown"


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a test run is for the test process
    loop = new_event_loop()
    loop.run_until_complete(_serve(sys.argv[1:]))


async def _serve(specifications: list[str]) -> None:
    network = Network()
    for specification in specifications:
        node, kind, port = specification.split(":")
        network.gates.append(Gate(network, node, kind, int(port)))
    print(" ".join(str(gate.port) for gate in network.gates), flush=True)
    ended = asyncio.get_running_loop().create_future()
    splitter = LineSplitter()

    def read() -> None:
        chunk = os.read(0, 4096)
        if not chunk:
            asyncio.get_running_loop().remove_reader(0)
            ended.set_result(None)
        for line in splitter.feed(chunk) if chunk else []:
            network.carry_out(line.decode())
            print("ok", flush=True)

    asyncio.get_running_loop().add_reader(0, read)
    await ended


if __name__ == "__main__":
    main()
