"""`quire cluster restart`: restarts nodes of `quire start --nodes` one by one, so that clients keep working."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from quire.cli.cluster.check_restart import check_is_known, wait_until_back, wait_until_it_may_stop
from quire.cli.cluster.restart_checks import ClusterView, next_to_restart, obstacles
from quire.cli.cluster.restart_view import look
from quire.cli.node.local.supervisor_client import SupervisorClient, SupervisorError
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure, fail_with_all
from quire.console.options import FloatRange, IntRange, connect, data_option, json_option, timeout_option
from quire.console.output import count, numbers, print_json
from quire.console.terminal import echo, echo_failure, rewrite_line

_DEFAULT_DATA = "./quire-data"


@click.command(
    epilog="""\b
Examples:
  quire cluster restart --rolling
  quire cluster restart --rolling --data /var/lib/quire --json
  quire cluster restart --node 2

\b
The nodes run the version and the settings with which their supervisor was started: to change
those, stop `quire start` and start it again. For nodes that systemd runs, see
`quire cluster check-restart`."""
)
@click.option("--rolling", is_flag=True, help="Restart all nodes, one after the other.")
@click.option("--node", type=IntRange(min=0), metavar="ID", help="Restart this node only.")
@data_option
@click.option("--force", is_flag=True, help="Also if something goes offline meanwhile.")
@click.option(
    "--wait",
    "wait_s",
    type=FloatRange(min=0),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long a node may take until it is in sync.",
)
@json_option
@timeout_option
def restart(
    rolling: bool, node: int | None, data: str | None, force: bool, wait_s: float, as_json: bool, timeout_s: float
) -> None:
    """Restart the nodes of a cluster that `quire start --nodes` runs on this machine.

    Before each restart it checks that every partition keeps a leader and enough in-sync replicas, and that most
    controllers stay up; after it, it waits until the node is in sync. The active controller comes last. It stops with
    exit code 1 before something would go offline.
    """
    if rolling == (node is not None):
        raise click.UsageError("add --rolling for all nodes, or --node ID for one.")
    with _supervisor(data or _DEFAULT_DATA) as supervisor:
        known = supervisor.nodes()
        servers = ",".join(each.address for each in known if each.address is not None)
        if not servers:
            raise Failure("no node of this cluster serves clients: the log of `quire start` says why.")
        with connect(servers, timeout_s) as client:
            work = Restart(client, supervisor, wait_s, force=force, as_json=as_json)
            work.run([each.id for each in known] if node is None else [node])


@contextmanager
def _supervisor(folder: str) -> Iterator[SupervisorClient]:
    try:
        with SupervisorClient(folder) as supervisor:
            yield supervisor
    except SupervisorError as error:
        raise Failure(str(error)) from error


class Restart:
    def __init__(
        self, client: BlockingClient, supervisor: SupervisorClient, wait_s: float, *, force: bool, as_json: bool
    ) -> None:
        self._client = client
        self._supervisor = supervisor
        self._wait_s = wait_s
        self._force = force
        self._as_json = as_json
        self._done: list[dict[str, object]] = []
        self._left: list[int] = []
        self._is_live = sys.stderr.isatty()

    def run(self, nodes: list[int]) -> None:
        self._left = list(nodes)
        began = time.monotonic()
        try:
            view = look(self._client)
            for node in nodes:
                check_is_known(view, node)
            self._check_all(view)
            while self._left:
                self._one(next_to_restart(look(self._client), self._left))
        except KeyboardInterrupt:
            self._say_what_is_left()
            raise
        finally:
            if self._as_json:
                print_json({"restarted": self._done, "not_restarted": self._left})
        if not self._as_json:
            echo(f"{count(len(nodes), 'node')} restarted in {time.monotonic() - began:.1f} s")

    def _check_all(self, view: ClusterView) -> None:
        """Everything that can be known before the first node stops."""
        found = [f"node {node}: {each.sentence}" for node in self._left for each in obstacles(view, node)]
        if self._force:
            for sentence in found:
                echo_failure("quire", f"{sentence.rstrip('.')}; --force goes on.")
            return
        if found:
            nothing = Failure("nothing was restarted; --force restarts in spite of this.")
            fail_with_all([*map(Failure, found), nothing])

    def _one(self, node: int) -> None:
        if not self._force and self._done:
            left = wait_until_it_may_stop(self._client, node, self._wait_s)
            fail_with_all([Failure(f"node {node}: {each.sentence}") for each in left])
        began = time.monotonic()
        self._show(node, "restarts")
        self._left.remove(node)
        self._supervisor.restart(node)
        serving_s = time.monotonic() - began
        lacks = wait_until_back(self._client, node, self._wait_s, lambda what: self._show(node, f"waits: {what}"))
        in_sync_s = time.monotonic() - began
        self._show(node, "")
        fail_with_all([Failure(f"node {node} was restarted and {each.sentence}") for each in lacks])
        self._done.append({"node": node, "serving_ms": round(serving_s * 1000), "in_sync_ms": round(in_sync_s * 1000)})
        if not self._as_json:
            echo(f"node {node}: serves again after {serving_s:.1f} s, in sync after {in_sync_s:.1f} s")
            sys.stdout.flush()

    def _show(self, node: int, what: str) -> None:
        """A line at the terminal that the next one replaces."""
        if self._is_live:
            text = f"node {node}: {what}" if what else ""
            rewrite_line(f"{text[:79]:79}" + ("" if what else "\r"), err=True)

    def _say_what_is_left(self) -> None:
        done = numbers([int(str(each["node"])) for each in self._done])
        echo_failure(
            "quire",
            f"interrupted: restarted {done}, not restarted {numbers(self._left)}; a node that is just being restarted "
            "comes back by itself.",
        )
