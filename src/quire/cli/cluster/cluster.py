"""`quire cluster`: the nodes, the controller, the features and the metadata quorum."""

import click

from quire.cli.cluster.balance import balance
from quire.cli.cluster.check_restart import check_restart
from quire.cli.cluster.quorum import quorum_or_none
from quire.cli.cluster.restart import restart
from quire.cli.cluster.status import status
from quire.client.admin import cluster as admin
from quire.client.admin.quorum import Quorum, QuorumMember
from quire.console.groups import HelpfulGroup
from quire.console.options import cluster_options, connect, json_option
from quire.console.output import print_json, print_table
from quire.console.terminal import echo


@click.group(
    cls=HelpfulGroup,
    invoke_without_command=True,
    epilog="""\b
Examples:
  quire cluster
  quire cluster -b broker-1:9092,broker-2:9092 --json
  quire cluster status --watch""",
)
@json_option
@cluster_options
@click.pass_context
def cluster(context: click.Context, as_json: bool, servers: str, timeout_s: float) -> None:
    """Show nodes, controller, features and the metadata quorum."""
    if context.invoked_subcommand is None:
        _describe(as_json, servers, timeout_s)


for each in (status, restart, check_restart, balance):
    cluster.add_command(each)


def _describe(as_json: bool, servers: str, timeout_s: float) -> None:
    with connect(servers, timeout_s) as client:
        description = client.run(admin.describe_cluster(client.cluster))
        features = client.run(admin.describe_features(client.cluster))
        quorum = quorum_or_none(client)
    # Brokers name any broker as the controller, because each forwards requests for the controller.
    controller_id = description.controller_id if quorum is None else quorum.leader_id
    if as_json:
        print_json(
            {
                "cluster_id": description.cluster_id,
                "controller": controller_id,
                "nodes": [
                    {
                        "id": broker.node_id,
                        "host": broker.address.host,
                        "port": broker.address.port,
                        "rack": broker.rack,
                        "fenced": broker.node_id in description.fenced,
                    }
                    for broker in description.brokers
                ],
                "features": {
                    feature.name: {
                        "level": feature.finalized,
                        "supported": [feature.supported_min, feature.supported_max],
                    }
                    for feature in features
                },
                "quorum": None if quorum is None else _quorum_json(quorum),
            }
        )
        return
    echo(f"cluster {description.cluster_id}\n")
    print_table(
        ("node", "address", "rack", "role"),
        [
            (
                broker.node_id,
                str(broker.address),
                broker.rack,
                "controller" if broker.node_id == controller_id else "broker",
            )
            for broker in description.brokers
        ],
    )
    if features:
        echo()
        rows = [
            (feature.name, feature.finalized, f"{feature.supported_min} to {feature.supported_max}")
            for feature in features
        ]
        print_table(("feature", "level", "supported"), rows)
    if quorum is None:
        echo("\nquorum: no active controller answers")
    else:
        echo(
            f"\nquorum: leader {quorum.leader_id} in epoch {quorum.leader_epoch}, "
            f"high watermark {quorum.high_watermark}"
        )
        members = [(member, "voter") for member in quorum.voters]
        members += [(member, "observer") for member in quorum.observers]
        rows_of_members = [(member.node_id, kind, member.log_end_offset, member.lag) for member, kind in members]
        print_table(("node", "kind", "log end", "lag"), rows_of_members)


def _quorum_json(quorum: Quorum) -> dict[str, object]:
    def member(found: QuorumMember) -> dict[str, int]:
        return {"id": found.node_id, "log_end_offset": found.log_end_offset, "lag": found.lag}

    return {
        "leader": quorum.leader_id,
        "epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": [member(voter) for voter in quorum.voters],
        "observers": [member(observer) for observer in quorum.observers],
    }
