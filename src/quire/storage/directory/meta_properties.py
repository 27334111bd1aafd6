"""`meta.properties`: the cluster and node that a data directory belongs to.

A Java properties file that formatting writes and every start checks, so that a node never uses the data of another node
or cluster by mistake.
"""

from typing import NamedTuple

from quire.config.errors import ConfigError
from quire.config.properties import read_properties
from quire.protocol import uuids
from quire.seams import Disk
from quire.seams.disk import write_atomically
from quire.storage.errors import DataDirectoryError

FILE_NAME = "meta.properties"

VERSION = 1

_ADVICE = (
    "restore the file, or remove it and run `quire storage format` to write it again, "
    "with --cluster-id and --node-id as they were."
)


class MetaProperties(NamedTuple):
    cluster_id: str
    node_id: int
    directory_id: bytes

    def check(self, path: str, *, cluster_id: str | None = None, node_id: int | None = None) -> None:
        """DataDirectoryError if the directory at `path` belongs to another cluster or node."""
        if cluster_id is not None and cluster_id != self.cluster_id:
            raise DataDirectoryError(
                f"{path} belongs to cluster {self.cluster_id}, not to {cluster_id}; "
                "point log.dirs to another directory, or start the node of that cluster."
            )
        if node_id is not None and node_id != self.node_id:
            raise DataDirectoryError(
                f"{path} belongs to node {self.node_id}; set node.id={self.node_id} or point log.dirs elsewhere."
            )


def format_meta(meta: MetaProperties) -> bytes:
    directory_id = uuids.to_text(meta.directory_id)
    lines = [
        "#",
        f"cluster.id={meta.cluster_id}",
        f"directory.id={directory_id}",
        f"node.id={meta.node_id}",
        f"version={VERSION}",
    ]
    return "\n".join([*lines, ""]).encode()


def parse_meta(content: bytes, path: str) -> MetaProperties:
    try:
        properties = {name: found.value for name, found in read_properties(content.decode()).items()}
        version = properties["version"]
        if version != str(VERSION):
            raise DataDirectoryError(
                f"{path} has version {version}; only version {VERSION} can be used, which Kafka writes since it runs "
                "without ZooKeeper."
            )
        return MetaProperties(
            cluster_id=properties["cluster.id"],
            node_id=int(properties["node.id"]),
            directory_id=uuids.from_text(properties["directory.id"]),
        )
    except KeyError as missing:
        raise DataDirectoryError(f"{path} has no {missing.args[0]}; {_ADVICE}") from None
    except (ValueError, ConfigError) as error:
        raise DataDirectoryError(f"{path} cannot be understood ({error}); {_ADVICE}") from error


def read_meta(disk: Disk, folder: str) -> MetaProperties | None:
    """The properties; None if the directory is not formatted."""
    path = f"{folder}/{FILE_NAME}"
    try:
        return parse_meta(disk.read_file(path), path)
    except FileNotFoundError:
        return None


def write_meta(disk: Disk, folder: str, meta: MetaProperties) -> None:
    write_atomically(disk, f"{folder}/{FILE_NAME}", format_meta(meta))
