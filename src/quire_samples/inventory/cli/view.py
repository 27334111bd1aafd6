"""`quire-samples inventory view`: serves the view over HTTP.

The main thread runs the client's loop and keeps the view up to date; the server answers requests in its own thread.
One lock guards the view. Nothing is stored: the next start rebuilds the view from the topic.
"""

import os
import threading

import click

from quire.console.failure import Failure
from quire.console.options import ListenAddress, cluster_options, connect
from quire.console.stopping import Stop
from quire.console.terminal import echo
from quire_samples.inventory.cli.http_server import JsonServer
from quire_samples.inventory.json_response import JsonResponse
from quire_samples.inventory.topics import Topics
from quire_samples.inventory.view import Follower, View


@click.command(
    epilog="""\b
Examples:
  quire-samples inventory view
  curl 127.0.0.1:8090/items              all items
  curl 127.0.0.1:8090/items/item-0007    one item
  curl 127.0.0.1:8090/health             offsets and lag; 503 until the view has caught up"""
)
@click.option("-l", "--listen", type=ListenAddress(), default="127.0.0.1:8090", show_default=True)
@click.option("--events", default=Topics().events, show_default=True, metavar="TOPIC", help="Changes of the stock.")
@cluster_options
def view(listen: str, events: str, servers: str, timeout_s: float) -> None:
    """Serve the current stock of an inventory over HTTP, as JSON, until SIGTERM or Ctrl-C.

    The view is rebuilt from the committed events on inventory-events, and follows them. The command prints
    `ready HOST:PORT` when the view has caught up; before that it answers requests, and /health returns 503.
    """
    current = View(events)
    lock = threading.Lock()

    def answer(path: str) -> JsonResponse:
        with lock:
            return current.answer(path)

    host, _, port = listen.rpartition(":")
    try:
        server = JsonServer((host.strip("[]"), int(port)), answer)
    except OSError as error:
        number = error.errno or 0
        reason = (os.strerror(number) if number > 0 else str(error)).lower()
        raise Failure(f"{listen} cannot be used ({reason}); choose another address with --listen HOST:PORT.") from error
    with server, connect(servers, timeout_s) as client:
        follower = Follower(client.cluster, current, lock)
        Stop(then=follower.stop)
        client.run(follower.rebuild())
        address, chosen = server.address
        echo(f"ready {address}:{chosen}")
        client.run(follower.follow())
