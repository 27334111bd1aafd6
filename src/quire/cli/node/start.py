"""`quire start`: runs one node in the foreground, or with --nodes a whole cluster on this machine."""

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from quire.console.colour import in_colour
from quire.console.failure import EXIT_USAGE, Failure
from quire.console.options import Assignment, IntRange, ListenAddress, data_option
from quire.console.printable import LineFormatter
from quire.console.terminal import echo

if TYPE_CHECKING:
    from quire.cli.node.config import StartOptions
    from quire.config.broker_config import BrokerConfig

LOG_FORMAT = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s"


@click.command(
    epilog="""\b
Examples:
  quire start                                    127.0.0.1:9092, data in ./quire-data
  quire start --data /var/lib/quire --listen :9092    on every interface
  quire start --config server.properties --set num.partitions=6
  quire start --ephemeral                        for tests: free port, temporary data
  quire start --nodes 3                          a cluster: 127.0.0.1:9092, :9102 and :9112

\b
Settings have Kafka's names. --set overrides the environment (QUIRE_NUM_PARTITIONS=6), which
overrides the file; so do --listen and --data. An empty data directory is formatted automatically.

\b
The controller listens on 127.0.0.1, on the port after the clients' (9093 by default).

\b
With --nodes, node 2 listens 10 ports above node 1, and so on; its data is in node-2 of the data
directory, and --set applies to all nodes. advertised.listeners is the address of node 1: the
others advertise the same host, also 10 ports apart. A node that dies is started again."""
)
@click.option("-c", "--config", "path", type=click.Path(exists=True, dir_okay=False), help="A server.properties.")
@data_option
@click.option("-l", "--listen", type=ListenAddress(), help="Where clients connect.  [default: 127.0.0.1:9092]")
@click.option(
    "--ephemeral",
    is_flag=True,
    help="A free port, settings for tests, and temporary data (data in --data is kept).",
)
@click.option("-s", "--set", "assignments", type=Assignment(), multiple=True, help="A setting; repeatable.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Level of the log on standard error.",
)
@click.option("--nodes", type=IntRange(min=1), metavar="N", help="Run a cluster of N nodes on this machine.")
@click.option("--no-restart", is_flag=True, help="With --nodes: leave a node that dies stopped.")
@click.option("--control-stdin", is_flag=True, hidden=True, help="Execute control lines; stop when they end.")
def start(
    path: str | None,
    data: str | None,
    listen: str | None,
    ephemeral: bool,
    assignments: Sequence[str],
    log_level: str,
    nodes: int | None,
    no_restart: bool,
    control_stdin: bool,
) -> None:
    """Start a node, or a cluster, and serve until SIGTERM or Ctrl-C.

    It prints `ready HOST:PORT` on standard output when clients can connect (with --nodes one line with the addresses of
    all nodes, separated by commas), and logs to standard error.
    """
    if no_restart and nodes is None:
        raise click.UsageError("--no-restart is about the nodes of a cluster: add --nodes, or remove it.")
    if control_stdin and nodes is not None:
        raise click.UsageError("--control-stdin is for one node: remove --nodes.")
    from quire.cli.node.config import StartOptions

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(LOG_FORMAT, "%Y-%m-%dT%H:%M:%S", coloured=in_colour(sys.stderr)))
    logging.basicConfig(handlers=[handler], level=log_level.upper(), force=True)
    with ExitStack() as stack:
        temporary = _temporary_folder(stack) if ephemeral and data is None else None
        options = StartOptions(path, assignments, data, listen, ephemeral, temporary)
        if nodes is None:
            _start_node(options, control=control_stdin)
        else:
            _start_cluster(nodes, options, restart=not no_restart)


def _start_node(options: "StartOptions", *, control: bool) -> None:
    from quire.cli.node.config import load_config_of, name_options
    from quire.cli.node.serve import NodeFailedError, run_node
    from quire.config.errors import ConfigError

    path, data = options.path, options.data
    try:
        config = load_config_of(options)
    except ConfigError as error:
        raise Failure(name_options(error, data=data, path=path, listen=options.listen), EXIT_USAGE) from error
    _warn(config)
    _refuse_folder_of_cluster(config)
    try:
        run_node(config, _announce, control=control)
    except (ConfigError, NodeFailedError) as error:
        raise Failure(name_options(error, data=data or options.temporary_dir, path=path)) from error


def _refuse_folder_of_cluster(config: "BrokerConfig") -> None:
    """A single node finds no controllers in the data of one of several, and clients of the others do not find it."""
    from quire.cli.node.local.description import is_folder_of_cluster, node_count
    from quire.real.disk import RealDisk

    disk, folder = RealDisk(), config.metadata_log_dir
    if is_folder_of_cluster(disk, folder):
        raise Failure(
            f"{folder} holds a cluster, not a single node; start it with --nodes {node_count(disk, folder)}, or choose "
            "another folder with --data."
        )
    above = os.path.dirname(os.path.abspath(folder))
    if config.topology.is_alone and disk.exists(folder) and is_folder_of_cluster(disk, above):
        raise Failure(
            f"{folder} belongs to a node of the cluster in {above}; start all of them with `quire start --nodes "
            f"{node_count(disk, above)} --data {above}`, or choose another folder with --data."
        )


def _start_cluster(count: int, options: "StartOptions", *, restart: bool) -> None:
    import time

    from quire.cli.node.config import name_options
    from quire.cli.node.local.formatting import prepare_cluster
    from quire.cli.node.local.ports import ReservedPorts
    from quire.cli.node.local.supervisor import ClusterFailedError, Supervisor
    from quire.cli.node.serve import NodeFailedError, check_ports
    from quire.config.errors import ConfigError
    from quire.real.disk import RealDisk
    from quire.real.random import RealRandom
    from quire.storage.errors import DataDirectoryError

    data, path = options.data, options.path
    with ReservedPorts() as ports:
        try:
            now_ms = time.time_ns() // 1_000_000
            nodes = prepare_cluster(
                count,
                options,
                ports,
                check_ports=check_ports,
                disk=RealDisk(),
                random=RealRandom(),
                now_ms=now_ms,
            )
        except ConfigError as error:
            raise Failure(name_options(error, data=data, path=path, listen=options.listen), EXIT_USAGE) from error
        except DataDirectoryError as error:
            raise Failure(name_options(error, data=data, path=path)) from error
        except NodeFailedError as error:
            raise Failure(str(error)) from error
        _warn(nodes[0].config)
        try:
            folder = os.path.dirname(nodes[0].config.metadata_log_dir)
            Supervisor(nodes, folder=folder, restart=restart, announce=_announce).run()
        except ClusterFailedError as error:
            raise Failure(str(error)) from error


def _warn(config: "BrokerConfig") -> None:
    for warning in config.warnings:
        logging.getLogger("quire.config").warning(warning)


def _temporary_folder(stack: ExitStack) -> str:
    from quire.cli.node.temporary import EPHEMERAL_PREFIX, TemporaryFolder

    folder = TemporaryFolder(EPHEMERAL_PREFIX)
    stack.callback(folder.remove)
    return folder.path


def _announce(address: str) -> None:
    try:
        echo(f"ready {address}")
        sys.stdout.flush()
    except OSError:
        # The reader of standard output is gone. The broker keeps serving its clients.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - to the end of the process, or its exit would fail too
