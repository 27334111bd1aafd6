"""`quire brokers`: the brokers that are registered in the cluster."""

import click

from quire.client.admin import brokers as admin
from quire.client.admin.cluster import ClusterDescription, describe_cluster
from quire.console.failure import Failure
from quire.console.groups import HelpfulGroup
from quire.console.options import IntRange, cluster_options, connect, json_option
from quire.console.output import format_table, print_json, title_of
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


@brokers.command(epilog="\b\nExample:\n  quire brokers unregister 4")
@click.argument("broker_id", metavar="ID", type=IntRange(min=0))
@json_option
@cluster_options
def unregister(broker_id: int, as_json: bool, servers: str, timeout_s: float) -> None:
    """Remove the registration of a broker that was stopped and will not return.

    Partitions keep it as a replica, so move or delete them first. A broker that runs registers again when it restarts.
    """
    with connect(servers, timeout_s) as client:
        found = client.run(describe_cluster(client.cluster, with_fenced=True))
        known = [broker.node_id for broker in found.brokers]
        if broker_id in known and broker_id not in found.fenced:
            raise Failure(f"broker {broker_id} serves clients: stop it first.")
        client.run(admin.unregister_broker(client.cluster, broker_id))
    if as_json:
        print_json({"id": broker_id, "registered": False})
    else:
        echo(f"broker {broker_id}: unregistered")


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
