"""`quire view inventory`: the view behind a small HTTP server.

The view is kept up in the main thread, where the client's loop runs; requests are answered in threads of their own,
under one lock. Nothing is written anywhere: a view that ended is rebuilt from the topic by the next one.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import click

from quire.cli.lazy import Failure
from quire.cli.options import ListenAddress, cluster_options, connect
from quire.cli.stopping import Stop
from quire.cli.terminal import echo
from quire.inventory.topics import Topics
from quire.inventory.view import Follower, View

REQUEST_TIMEOUT_S = 30
BACKLOG = 128
"""How many may come in the same moment; the others would have to try again, a second later."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = BACKLOG

    def __init__(self, address: tuple[str, int], view: View) -> None:
        self.view = view
        self.lock = threading.Lock()
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asked may leave before the answer; that is no news."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_TIMEOUT_S

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        assert isinstance(self.server, _Server)
        with self.server.lock:
            status, content = self.server.view.answer(_as_utf8(self.path))
        body = json.dumps(content, ensure_ascii=False).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Says nothing: who asked what is for a proxy to log."""


def _as_utf8(path: str) -> str:
    """Names that are not percent-encoded: the server takes bytes for Latin-1, and `curl` sends UTF-8 as it is typed."""
    return path.encode("latin-1").decode(errors="replace")


@click.command(
    epilog="""\b
Examples:
  quire view inventory
  curl 127.0.0.1:8090/items              all items
  curl 127.0.0.1:8090/items/item-0007    one of them
  curl 127.0.0.1:8090/health             how far it is; 503 until it has caught up"""
)
@click.option("-l", "--listen", type=ListenAddress(), default="127.0.0.1:8090", show_default=True)
@click.option("--events", default=Topics().events, show_default=True, metavar="TOPIC", help="Where changes come from.")
@cluster_options
def inventory(listen: str, events: str, servers: str, timeout_s: float) -> None:
    """Serve the current stock of an inventory over HTTP, as JSON, until SIGTERM or Ctrl-C.

    It is rebuilt from inventory-events and follows it, committed events only. Prints `ready HOST:PORT` when it has
    caught up; it answers before, and /health says so.
    """
    view = View(events)
    host, _, port = listen.rpartition(":")
    try:
        server = _Server((host, int(port)), view)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Failure(f"{listen} cannot be listened on ({reason}); choose another with --listen HOST:PORT.") from error
    with server, connect(servers, timeout_s) as client:
        follower = Follower(client.cluster, view, server.lock)
        Stop(then=follower.stop)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            client.run(follower.rebuild())
            address, chosen = server.server_address[:2]
            echo(f"ready {address!s}:{chosen}")
            client.run(follower.follow())
        finally:
            server.shutdown()
