"""`quire cluster status`: whether the controllers, the brokers and the partitions are well, at a glance."""

from typing import NamedTuple

import click

from quire.cli.cluster import brokers, quorum
from quire.client.admin.cluster import ClusterDescription, describe_cluster
from quire.client.admin.quorum import Quorum
from quire.client.metadata import NO_LEADER
from quire.client.shell_blocking import BlockingClient
from quire.console.live_screen import watch
from quire.console.options import cluster_options, connect, json_option, watch_options
from quire.console.output import count, print_json
from quire.console.terminal import echo, to_json

_SHOWN = 20


class Status(NamedTuple):
    description: ClusterDescription
    quorum: Quorum | None
    """None if there is no active controller, or if the brokers do not describe it."""
    partitions: int
    leaderless: list[str]
    out_of_sync: list[str]
    """Partitions that have a leader, and replicas outside the ISR."""


def is_title(line: str) -> bool:
    return brokers.IS_TITLE(line) or quorum.IS_TITLE(line)


@click.command(
    epilog="\b\nExamples:\n  quire cluster status\n  quire cluster status --watch\n  quire cluster status --json"
)
@watch_options
@json_option
@cluster_options
def status(live: bool, interval_s: float, as_json: bool, servers: str, timeout_s: float) -> None:
    """Show controllers, brokers, and partitions without a leader or with replicas that are not in sync.

    Exit code 1 if there is no active controller, a broker is fenced, or there are such partitions. With --watch and
    --json, each refresh prints one line.
    """
    with connect(servers, timeout_s) as client:
        if live:
            watch(client, lambda: _refresh(client, as_json), interval_s, is_title)
        found = _find(client)
    if as_json:
        print_json(_status_json(found))
    else:
        echo(_view(found), headings=is_title)
    if not is_well(found):
        raise click.exceptions.Exit(1)


def is_well(found: Status) -> bool:
    unwell = found.description.fenced or found.leaderless or found.out_of_sync
    return found.quorum is not None and not unwell


def _refresh(client: BlockingClient, as_json: bool) -> str:
    found = _find(client)
    return to_json(_status_json(found)) if as_json else _view(found)


def _find(client: BlockingClient) -> Status:
    description = client.run(describe_cluster(client.cluster, with_fenced=True))
    client.run(client.cluster.refresh(None))
    partitions = {
        f"{topic.name}-{index}": partition
        for topic in client.cluster.metadata.topics.values()
        for index, partition in topic.partitions.items()
    }
    leaderless = sorted(name for name, each in partitions.items() if each.leader == NO_LEADER)
    lagging = sorted(name for name, each in partitions.items() if len(each.isr) < len(each.replicas))
    out_of_sync = [name for name in lagging if name not in leaderless]
    return Status(description, quorum.quorum_or_none(client), len(partitions), leaderless, out_of_sync)


def _status_json(found: Status) -> dict[str, object]:
    return {
        "cluster_id": found.description.cluster_id,
        "well": is_well(found),
        "quorum": None if found.quorum is None else quorum.quorum_json(found.quorum),
        "brokers": brokers.brokers_json(found.description),
        "partitions": found.partitions,
        "leaderless": found.leaderless,
        "out_of_sync": found.out_of_sync,
    }


def _view(found: Status) -> str:
    controllers = "no active controller answers" if found.quorum is None else quorum.quorum_view(found.quorum)
    fenced = len(found.description.fenced)
    lines = [
        f"cluster {found.description.cluster_id}",
        "",
        f"quorum: {controllers}",
        "",
        f"{count(len(found.description.brokers), 'broker')}, {fenced or 'none'} fenced",
        "",
        brokers.brokers_view(found.description),
        "",
        f"{count(found.partitions, 'partition')}, {len(found.leaderless) or 'none'} without a leader, "
        f"{len(found.out_of_sync) or 'none'} with replicas out of sync",
        *_some("no leader: ", found.leaderless),
        *_some("out of sync: ", found.out_of_sync),
    ]
    return "\n".join(lines)


def _some(what: str, names: list[str]) -> list[str]:
    lines = [f"  {what}{name}" for name in names[:_SHOWN]]
    return lines if len(names) <= _SHOWN else [*lines, f"  and {len(names) - _SHOWN} more"]
