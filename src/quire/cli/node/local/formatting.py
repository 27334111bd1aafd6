"""Prepares the folder of a local cluster: its description, and the data directories of nodes that have none yet.

Everything that can be refused is checked before the first write, so a start that fails leaves no new folders.
"""

import logging
from collections.abc import Callable

from quire.cli.node.config import StartOptions
from quire.cli.node.local.description import FILE_NAME, Description, read_description, write_description
from quire.cli.node.local.plan import PlannedNode, first_voters, load_base, plan_nodes
from quire.cli.node.local.ports import ReservedPorts
from quire.config.broker_config import BrokerConfig
from quire.console.output import count as counted
from quire.controller.format import check_for_foreign_files, format_node, new_cluster_id
from quire.raft.control_state import NO_VOTERS
from quire.seams import Disk, Random
from quire.storage.directory.meta_properties import read_meta
from quire.storage.errors import DataDirectoryError, unusable_directory

log = logging.getLogger("quire.supervisor")


def prepare_cluster(
    count: int,
    options: StartOptions,
    ports: ReservedPorts,
    *,
    check_ports: Callable[[BrokerConfig], None],
    disk: Disk,
    random: Random,
    now_ms: int,
) -> list[PlannedNode]:
    """The nodes, formatted and ready to start. ConfigError or DataDirectoryError if they cannot be.

    `check_ports` raises if a node cannot listen; nothing has been written then.
    """
    base = load_base(options)
    folder = base.metadata_log_dir
    try:
        description = _described(disk, folder, base, count, ports, random)
        nodes = plan_nodes(options, base, description, ports)
        ports.all_taken()
        _check_still_formatted(disk, nodes[: description.formatted], description)
        for node in nodes:
            check_ports(node.config)
        if description.formatted < count:
            for node in nodes[description.formatted :]:
                for directory in node.config.data_dirs:
                    check_for_foreign_files(disk, directory)
            _format(disk, random, folder, description, nodes, now_ms)
    except OSError as error:
        raise unusable_directory(folder, error) from error
    return nodes


def _described(
    disk: Disk, folder: str, base: BrokerConfig, count: int, ports: ReservedPorts, random: Random
) -> Description:
    """The cluster in this folder, or a new one; with `count` nodes."""
    if read_meta(disk, folder) is not None:
        raise DataDirectoryError(
            f"{folder} is the data directory of a single node; choose another folder for the cluster with --data."
        )
    listener = base.topology.controller_listeners[0].name
    known = read_description(disk, folder, listener)
    if known is None:
        return Description(new_cluster_id(random), first_voters(base, count, ports, random), count, 0)
    if count < known.nodes:
        raise DataDirectoryError(
            f"{folder} holds a cluster of {known.nodes} nodes; start it with --nodes {known.nodes}, or choose another "
            "folder with --data."
        )
    if count > known.nodes:
        log.info(
            "%s holds a cluster of %s: adding %s as brokers; the controllers are still %s",
            folder,
            counted(known.nodes, "node"),
            ", ".join(f"node-{node_id}" for node_id in range(known.nodes + 1, count + 1)),
            ", ".join(f"node-{voter.key.id}" for voter in known.voters),
        )
    return known._replace(nodes=count)


def _check_still_formatted(disk: Disk, nodes: list[PlannedNode], description: Description) -> None:
    for node in nodes:
        directory = node.config.metadata_log_dir
        if read_meta(disk, directory) is None:
            instead = (
                "choose another folder with --data for a new cluster: this was the only controller, and the metadata "
                "of the cluster is lost without it."
                if description.voters.ids == [node.id]
                else f"run `quire storage format --data {directory} --node-id {node.id} --cluster-id "
                f"{description.cluster_id} --no-initial-controllers` to start this node without its data."
            )
            raise DataDirectoryError(
                f"{directory} is empty, though {FILE_NAME} says that {node.name} was formatted: restore it, or "
                f"{instead}"
            )


def _format(
    disk: Disk, random: Random, folder: str, description: Description, nodes: list[PlannedNode], now_ms: int
) -> None:
    disk.make_dirs(folder)
    write_description(disk, folder, description)
    for node in nodes[description.formatted :]:
        # Nodes that are added later find the voters in the log.
        voters = NO_VOTERS if description.formatted else description.voters
        format_node(disk, random, node.config, now_ms=now_ms, cluster_id=description.cluster_id, initial_voters=voters)
    write_description(disk, folder, description._replace(formatted=description.nodes))
