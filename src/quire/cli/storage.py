"""`quire storage`: data directories before a node runs on them, as Kafka's kafka-storage does it."""

import time
from collections.abc import Sequence

import click

from quire.cli.lazy import EXIT_NOT_FOUND, Failure, HelpfulGroup
from quire.cli.node_config import load_config, name_options
from quire.cli.options import Assignment, IntRange, data_option, json_option
from quire.cli.output import print_json, print_table
from quire.cli.terminal import echo
from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.protocol import uuids
from quire.real.disk import RealDisk
from quire.real.random import RealRandom
from quire.storage.errors import DataDirectoryError, unusable_directory
from quire.storage.meta_properties import MetaProperties, read_meta


@click.group(cls=HelpfulGroup)
def storage() -> None:
    """Prepare and inspect data directories. A node on its own formats an empty one by itself."""


@storage.command("random-uuid", epilog="\b\nExample:\n  quire storage format --cluster-id $(quire storage random-uuid)")
def random_uuid() -> None:
    """Print a new cluster id."""
    echo(uuids.to_text(RealRandom().uuid()))


@storage.command(
    "format",
    epilog="""\b
Examples:
  quire storage format --data /var/lib/quire
  quire storage format --config server.properties --cluster-id 4L6g3nShT-eMCtK--X86sw""",
)
@click.option("-c", "--config", "path", type=click.Path(exists=True, dir_okay=False), help="A server.properties.")
@click.option("-t", "--cluster-id", metavar="UUID", help="The cluster it will belong to; a new one if not given.")
@data_option
@click.option("--node-id", type=IntRange(min=0), help="The node it will belong to.  [default: 1]")
@click.option("-s", "--set", "assignments", type=Assignment(), multiple=True, help="A setting; repeatable.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="A directory that is formatted already is not an error.")
@click.option("--standalone", is_flag=True, help="A quorum of this one controller; so far every node is one.")
def format_storage(
    path: str | None,
    cluster_id: str | None,
    data: str | None,
    node_id: int | None,
    assignments: Sequence[str],
    ignore_formatted: bool,
    standalone: bool,
) -> None:
    """Write the first files of a node's data directories."""
    from quire.controller.format import format_node

    if cluster_id is not None and not _is_uuid(cluster_id):
        raise click.BadParameter(
            f"{cluster_id!r} is not a UUID; `quire storage random-uuid` makes one", param_hint="--cluster-id"
        )
    if node_id is not None:
        assignments = [*assignments, f"node.id={node_id}"]
    disk = RealDisk()
    try:
        config = load_config(path, assignments, data=data)
        formatted = [(where, meta) for where, meta in _metas(disk, config) if meta is not None]
        for where, meta in formatted:
            meta.check(where, cluster_id=cluster_id, node_id=config.node_id)
            if not ignore_formatted:
                raise Failure(
                    f"{where} is formatted already, for cluster {meta.cluster_id}; add --ignore-formatted to keep it."
                )
        try:
            now_ms = time.time_ns() // 1_000_000
            cluster_id = format_node(disk, RealRandom(), config, now_ms=now_ms, cluster_id=cluster_id)
        except OSError as error:
            where = next((each for each in config.data_dirs if str(error.filename).startswith(each)), error.filename)
            raise unusable_directory(where, error) from error
    except (ConfigError, DataDirectoryError) as error:
        raise Failure(name_options(str(error), data=data, path=path)) from error
    kept = [where for where, _ in formatted]
    for where, _ in _metas(disk, config):
        done = "was formatted already" if where in kept else "formatted"
        echo(f"{where}: {done}, node {config.node_id} of cluster {cluster_id}")


@storage.command(epilog="\b\nExamples:\n  quire storage info\n  quire storage info --config server.properties --json")
@click.option("-c", "--config", "path", type=click.Path(exists=True, dir_okay=False), help="A server.properties.")
@data_option
@json_option
def info(path: str | None, data: str | None, as_json: bool) -> None:
    """Show whose data directories these are. Exit code 4 if one is not formatted."""
    try:
        found = _metas(RealDisk(), load_config(path, data=data))
    except (ConfigError, DataDirectoryError) as error:
        raise Failure(name_options(str(error), data=data, path=path)) from error
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


def _described(meta: MetaProperties | None) -> dict[str, object]:
    if meta is None:
        return {"formatted": False}
    return {
        "formatted": True,
        "cluster_id": meta.cluster_id,
        "node_id": meta.node_id,
        "directory_id": uuids.to_text(meta.directory_id),
    }


def _metas(disk: RealDisk, config: BrokerConfig) -> list[tuple[str, MetaProperties | None]]:
    metas: list[tuple[str, MetaProperties | None]] = []
    for directory in config.data_dirs:
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
