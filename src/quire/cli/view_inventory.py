"""`quire view inventory`: the view behind a small HTTP server.

The view is kept up in the main thread, where the client's loop runs; requests are answered in a thread of their own,
under one lock. Nothing is written anywhere: a view that ended is rebuilt from the topic by the next one.
"""

import os
import threading

import click

from quire.cli.http_server import Answer, JsonServer
from quire.cli.lazy import Failure
from quire.cli.options import ListenAddress, cluster_options, connect
from quire.cli.stopping import Stop
from quire.cli.terminal import echo
from quire.inventory.topics import Topics
from quire.inventory.view import Follower, View


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
    lock = threading.Lock()

    def answer(path: str) -> Answer:
        with lock:
            return view.answer(path)

    host, _, port = listen.rpartition(":")
    try:
        server = JsonServer((host.strip("[]"), int(port)), answer)
    except OSError as error:
        number = error.errno or 0
        reason = (os.strerror(number) if number > 0 else str(error)).lower()
        raise Failure(f"{listen} cannot be listened on ({reason}); choose another with --listen HOST:PORT.") from error
    with server, connect(servers, timeout_s) as client:
        follower = Follower(client.cluster, view, lock)
        Stop(then=follower.stop)
        client.run(follower.rebuild())
        address, chosen = server.address
        echo(f"ready {address}:{chosen}")
        client.run(follower.follow())
