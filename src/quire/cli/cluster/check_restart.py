"""`quire cluster check-restart`: whether a node may be stopped now, for the scripts that restart real machines."""

import time
from collections.abc import Callable, Sequence

import click

from quire.cli.cluster.restart_checks import ClusterView, Obstacle, missing, obstacles
from quire.cli.cluster.restart_view import look
from quire.client.errors import ClientError
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import EXIT_NOT_FOUND, Failure, fail_with_all
from quire.console.options import FloatRange, IntRange, cluster_options, connect, json_option
from quire.console.output import print_json
from quire.console.terminal import echo
from quire.protocol.errors import ApiError
from quire.steps import sleep

_POLL_MS = 200.0


@click.command(
    "check-restart",
    epilog="""\b
Examples:
  quire cluster check-restart --node 2
  quire cluster check-restart --node 2 --wait 600
  quire cluster check-restart --node 2 --back --wait 600 --json

\b
A loop over machines runs it before it stops a node, and with --back after it has started the node:
  quire cluster check-restart --node 2 --wait 600 -b broker-1:9092""",
)
@click.option("--node", type=IntRange(min=0), required=True, metavar="ID", help="The node.")
@click.option("--back", is_flag=True, help="Check instead that the node serves again and is in sync.")
@click.option(
    "--wait",
    "wait_s",
    type=FloatRange(min=0),
    default=0,
    metavar="SECONDS",
    help="Wait so long until the answer is yes.",
)
@json_option
@cluster_options
def check_restart(node: int, back: bool, wait_s: float, as_json: bool, servers: str, timeout_s: float) -> None:
    """Say whether a node may be stopped now without taking anything offline.

    Exit code 1 if a partition would have no leader or too few in-sync replicas for acks=all, or if most controllers
    would be down. With --wait it waits for nodes that are down or behind, but not for what waiting does not change.
    """
    with connect(servers, timeout_s) as client:
        if not back:
            check_is_known(look(client), node)
        found = wait_until_back(client, node, wait_s) if back else wait_until_it_may_stop(client, node, wait_s)
    if as_json:
        print_json(_json(node, found, back=back))
    elif not found:
        echo(f"node {node}: is back and in sync" if back else f"node {node}: may be stopped")
    fail_with_all([Failure(f"node {node}{'' if back else ':'} {each.sentence}") for each in found])


def check_is_known(view: ClusterView, node: int) -> None:
    if node not in view.nodes:
        ids = ", ".join(str(each) for each in view.nodes)
        raise Failure(f"there is no node {node} in this cluster, which has {ids}.", EXIT_NOT_FOUND)


def wait_until_it_may_stop(client: BlockingClient, node: int, wait_s: float) -> list[Obstacle]:
    """What still prevents the stop after the time; empty as soon as nothing does."""

    def find() -> list[Obstacle]:
        return obstacles(look(client), node)

    return _wait(client, find, wait_s, lambda found: all(each.passes for each in found))


def wait_until_back(
    client: BlockingClient, node: int, wait_s: float, progress: Callable[[str], None] = lambda _: None
) -> list[Obstacle]:
    """What the node lacks after the time; empty as soon as it is in sync. `progress` gets what it lacks meanwhile."""

    def find() -> list[Obstacle]:
        try:
            lacks = missing(look(client), node)
        except (ApiError, ClientError) as error:
            lacks = [str(error)]
        progress("; ".join(lacks))
        sentence = f"is not back: {'; '.join(lacks)}; its log says what it waits for."
        return [Obstacle("not-back", sentence, True)] if lacks else []

    return _wait(client, find, wait_s, lambda _: True)


def _wait(
    client: BlockingClient,
    find: Callable[[], list[Obstacle]],
    wait_s: float,
    may_pass: Callable[[Sequence[Obstacle]], bool],
) -> list[Obstacle]:
    deadline = time.monotonic() + wait_s
    while True:
        began = time.monotonic()
        found = find()
        if not found or not may_pass(found) or time.monotonic() >= deadline:
            return found
        # In a cluster with very many partitions a look takes long, and must not keep the brokers busy.
        client.run(sleep(client.cluster.clock, max(_POLL_MS, 2000 * (time.monotonic() - began))))


def _json(node: int, found: Sequence[Obstacle], *, back: bool) -> dict[str, object]:
    return {
        "node": node,
        "back" if back else "may_stop": not found,
        "obstacles": [
            {
                "kind": each.kind,
                "message": each.sentence,
                "passes": each.passes,
                "partitions": list(each.partitions),
            }
            for each in found
        ],
    }
