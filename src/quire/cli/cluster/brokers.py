"""`quire brokers`: the brokers that are registered in the cluster."""

import click

from quire.client.admin import brokers as admin
from quire.client.admin.cluster import ClusterDescription, describe_cluster
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure
from quire.console.groups import HelpfulGroup
from quire.console.options import IntRange, cluster_options, connect, json_option
from quire.console.output import count, format_table, print_json, some, title_of
from quire.console.terminal import echo

_TITLES = ("broker", "address", "rack", "state")
IS_TITLE = title_of(_TITLES)


@click.group(cls=HelpfulGroup, epilog="\b\nExample:\n  quire brokers list")
def brokers() -> None:
    """List brokers, and unregister one that will not return."""


@brokers.command("list", epilog="\b\nExamples:\n  quire brokers list\n  quire brokers list -b broker-1:9092 --json")
@json_option
@cluster_options
def list_brokers(as_json: bool, servers: str, timeout_s: float) -> None:
    """List all brokers. A fenced broker does not serve: it is down, starting or stopping."""
    with connect(servers, timeout_s) as client:
        found = client.run(describe_cluster(client.cluster, with_fenced=True))
    if as_json:
        print_json(brokers_json(found))
    else:
        echo(brokers_view(found), headings=IS_TITLE)


@brokers.command(epilog="\b\nExamples:\n  quire brokers unregister 4\n  quire brokers unregister 4 --force")
@click.argument("broker_id", metavar="ID", type=IntRange(min=0))
@click.option("--force", is_flag=True, help="Also if partitions have replicas on it, which they keep.")
@json_option
@cluster_options
def unregister(broker_id: int, force: bool, as_json: bool, servers: str, timeout_s: float) -> None:
    """Remove the registration of a broker that was stopped and will not return.

    It must have no replicas. A broker that runs registers again when it restarts.
    """
    with connect(servers, timeout_s) as client:
        found = client.run(describe_cluster(client.cluster, with_fenced=True))
        known = [broker.node_id for broker in found.brokers]
        if broker_id in known and broker_id not in found.fenced:
            raise Failure(f"broker {broker_id} serves clients: stop it first.")
        if not force and broker_id in known:
            _check_has_no_replicas(client, broker_id)
        client.run(admin.unregister_broker(client.cluster, broker_id))
    if as_json:
        print_json({"id": broker_id, "registered": False})
    else:
        echo(f"broker {broker_id}: unregistered")


def _check_has_no_replicas(client: BlockingClient, broker_id: int) -> None:
    client.run(client.cluster.refresh(None))
    held = sorted(
        f"{topic.name}-{index}"
        for topic in client.cluster.metadata.topics.values()
        for index, partition in topic.partitions.items()
        if broker_id in partition.replicas
    )
    if held:
        raise Failure(
            f"broker {broker_id} has replicas of {count(len(held), 'partition')} ({some(held)}): move them with "
            f"`quire partitions reassign --drain {broker_id}` first; --force unregisters it in spite of that."
        )


def brokers_json(found: ClusterDescription) -> list[dict[str, object]]:
    return [
        {
            "id": broker.node_id,
            "host": broker.address.host,
            "port": broker.address.port,
            "rack": broker.rack,
            "fenced": broker.node_id in found.fenced,
        }
        for broker in found.brokers
    ]


def brokers_view(found: ClusterDescription) -> str:
    rows = [
        (
            broker.node_id,
            str(broker.address),
            broker.rack,
            "fenced" if broker.node_id in found.fenced else "serving",
        )
        for broker in found.brokers
    ]
    return format_table(_TITLES, rows)
