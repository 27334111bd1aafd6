"""`quire storage`: formats and describes data directories, like Kafka's kafka-storage."""

import time
from collections.abc import Iterable, Sequence

import click

from quire.cli.node.config import load_config, name_options
from quire.cli.node.local.description import data_directories
from quire.config.errors import ConfigError
from quire.console.failure import EXIT_NOT_FOUND, Failure
from quire.console.groups import HelpfulGroup
from quire.console.options import Assignment, IntRange, data_option, json_option
from quire.console.output import print_json, print_table
from quire.console.terminal import echo
from quire.protocol import uuids
from quire.real.disk import RealDisk
from quire.real.random import RealRandom
from quire.storage.directory.meta_properties import MetaProperties, read_meta
from quire.storage.errors import DataDirectoryError, unusable_directory


@click.group(
    cls=HelpfulGroup,
    epilog="""\b
Examples:
  quire storage info
  quire storage format --data /var/lib/quire""",
)
def storage() -> None:
    """Prepare and inspect data directories. A single node formats an empty one automatically."""


@storage.command("random-uuid", epilog="\b\nExample:\n  quire storage format --cluster-id $(quire storage random-uuid)")
@json_option
def random_uuid(as_json: bool) -> None:
    """Print a new cluster id."""
    text = uuids.to_text(RealRandom().uuid())
    if as_json:
        print_json({"uuid": text})
    else:
        echo(text)


@storage.command(
    "format",
    epilog="""\b
Examples:
  quire storage format --data /var/lib/quire
  quire storage format --config server.properties --cluster-id 4L6g3nShT-eMCtK--X86sw

\b
Format all nodes of a cluster with the same --cluster-id, and its first controllers with the same
--initial-controllers, each as ID@HOST:PORT:DIRECTORY_ID (`quire storage random-uuid` makes ids).
Brokers, and controllers that join later, get --no-initial-controllers. A configuration with
controller.quorum.voters has a static quorum and needs none of these options.""",
)
@click.option("-c", "--config", "path", type=click.Path(exists=True, dir_okay=False), help="A server.properties.")
@click.option("--cluster-id", metavar="UUID", help="Id of the cluster.  [default: a new one]")
@data_option
@click.option("--node-id", type=IntRange(min=0), help="Id of the node.  [default: 1]")
@click.option("-s", "--set", "assignments", type=Assignment(), multiple=True, help="A setting; repeatable.")
@click.option("--ignore-formatted", is_flag=True, help="Keep directories that are already formatted.")
@click.option("--standalone", is_flag=True, help="A quorum of this controller alone.  [default for a single node]")
@click.option("-I", "--initial-controllers", "initial", metavar="VOTER,...", help="The controllers of a new cluster.")
@click.option("-N", "--no-initial-controllers", "no_initial", is_flag=True, help="The node joins an existing cluster.")
@json_option
def format_storage(
    path: str | None,
    cluster_id: str | None,
    data: str | None,
    node_id: int | None,
    assignments: Sequence[str],
    ignore_formatted: bool,
    standalone: bool,
    initial: str | None,
    no_initial: bool,
    as_json: bool,
) -> None:
    """Write the first files of a node's data directories."""
    from quire.cli.storage.first_voters import check_cluster_id_given, check_one_choice, first_voters
    from quire.controller.format import format_node

    option = check_one_choice(standalone, initial, no_initial)
    if cluster_id is not None and not _is_uuid(cluster_id):
        raise click.BadParameter(
            f"{cluster_id!r} is not a UUID; create one with `quire storage random-uuid`", param_hint="--cluster-id"
        )
    if node_id is not None:
        _check_node_id(node_id, assignments)
        assignments = [*assignments, f"node.id={node_id}"]
    disk = RealDisk()
    try:
        config = load_config(path, assignments, data=data)
        check_cluster_id_given(config, option, cluster_id)
        voters = first_voters(config, option, initial)
        formatted = [(where, meta) for where, meta in _metas(disk, config.data_dirs) if meta is not None]
        for where, meta in formatted:
            meta.check(where, cluster_id=cluster_id, node_id=config.node_id)
            if not ignore_formatted:
                raise Failure(
                    f"{where} is already formatted for cluster {meta.cluster_id}; add --ignore-formatted to keep it."
                )
        try:
            now_ms = time.time_ns() // 1_000_000
            cluster_id = format_node(
                disk, RealRandom(), config, now_ms=now_ms, cluster_id=cluster_id, initial_voters=voters
            )
        except OSError as error:
            where = next((each for each in config.data_dirs if str(error.filename).startswith(each)), error.filename)
            raise unusable_directory(where, error) from error
    except (ConfigError, DataDirectoryError) as error:
        raise Failure(name_options(error, data=data, path=path)) from error
    if option == "--standalone" and not config.topology.is_alone:
        echo(
            f"Node {config.node_id} is a quorum of its own. Format the other nodes of this cluster with "
            "--no-initial-controllers, start them, and let controllers vote with `quire quorum add`.",
            err=True,
        )
    kept = [where for where, _ in formatted]
    if as_json:
        print_json(
            [
                {"path": where, "kept": where in kept} | _described(meta)
                for where, meta in _metas(disk, config.data_dirs)
            ]
        )
        return
    for where, _ in _metas(disk, config.data_dirs):
        done = "was already formatted" if where in kept else "formatted"
        echo(f"{where}: {done}, node {config.node_id} of cluster {cluster_id}")


@storage.command(epilog="\b\nExamples:\n  quire storage info\n  quire storage info data --json")
@click.option("-c", "--config", "path", type=click.Path(exists=True, dir_okay=False), help="A server.properties.")
@click.argument("directory", metavar="[DIR]", required=False)
@data_option
@json_option
def info(path: str | None, directory: str | None, data: str | None, as_json: bool) -> None:
    """Show the cluster and node of data directories. Exit code 4 if one is not formatted.

    DIR is the same as --data DIR. The folder of a cluster (`quire start --nodes`) shows all of its nodes.
    """
    if directory is not None and data is not None:
        raise click.UsageError("give the directory once, as DIR or with --data")
    data = directory if data is None else data
    try:
        disk, config = RealDisk(), load_config(path, data=data)
        found = _metas(disk, [each for folder in config.data_dirs for each in data_directories(disk, folder)])
    except (ConfigError, DataDirectoryError) as error:
        raise Failure(name_options(error, data=data, path=path)) from error
    if as_json:
        print_json([{"path": where} | _described(meta) for where, meta in found])
    else:
        titles = ("directory", "cluster", "node", "id")
        rows = [
            (where, meta.cluster_id, meta.node_id, uuids.to_text(meta.directory_id))
            if meta is not None
            else (where, "not formatted", None, None)
            for where, meta in found
        ]
        print_table(titles, rows)
    if any(meta is None for _, meta in found):
        raise click.exceptions.Exit(EXIT_NOT_FOUND)


def _check_node_id(node_id: int, assignments: Sequence[str]) -> None:
    for assignment in assignments:
        key, _, value = assignment.partition("=")
        if key.strip() in ("node.id", "broker.id") and value.strip() != str(node_id):
            raise click.UsageError(
                f"--node-id {node_id} and --set {assignment} contradict each other: remove one of them."
            )


def _described(meta: MetaProperties | None) -> dict[str, object]:
    if meta is None:
        return {"formatted": False}
    return {
        "formatted": True,
        "cluster_id": meta.cluster_id,
        "node_id": meta.node_id,
        "directory_id": uuids.to_text(meta.directory_id),
    }


def _metas(disk: RealDisk, directories: Iterable[str]) -> list[tuple[str, MetaProperties | None]]:
    metas: list[tuple[str, MetaProperties | None]] = []
    for directory in directories:
        try:
            metas.append((directory, read_meta(disk, directory)))
        except OSError as error:
            raise unusable_directory(directory, error) from error
    return metas


def _is_uuid(text: str) -> bool:
    try:
        return len(uuids.from_text(text)) == 16
    except ValueError:
        return False
