"""The file that describes a local cluster: `quire-cluster.properties`, beside the folders of its nodes.

    cluster.id=4L6g3nShT-eMCtK--X86sw
    controllers=1@127.0.0.1:9093:JEXY6aqzQY-32P5TStzaFg,...     the first voters, as in --initial-controllers
    nodes=3
    formatted=3                                                 nodes 1 to 3 have been formatted

It is written before the nodes are formatted and again afterwards. So a start after a crash finishes the formatting, and
never formats the directory of a voter that has lost it.
"""

from typing import NamedTuple

from quire.config.errors import ConfigError
from quire.config.properties import read_properties
from quire.controller.initial_voters import InitialVotersError, format_initial_voters, parse_initial_voters
from quire.protocol import uuids
from quire.raft.replicas import VoterSet
from quire.seams import Disk
from quire.seams.disk import write_atomically
from quire.storage.errors import DataDirectoryError

FILE_NAME = "quire-cluster.properties"


class Description(NamedTuple):
    cluster_id: str
    voters: VoterSet
    nodes: int
    formatted: int


def read_description(disk: Disk, folder: str, listener: str) -> Description | None:
    """`listener` is the name of the controllers' listener. None if the folder has no cluster."""
    path = f"{folder}/{FILE_NAME}"
    try:
        content = disk.read_file(path)
    except FileNotFoundError:
        return None
    try:
        properties = {name: found.value for name, found in read_properties(content.decode()).items()}
        uuids.from_text(properties["cluster.id"])
        voters = parse_initial_voters(properties["controllers"], listener)
        return Description(properties["cluster.id"], voters, int(properties["nodes"]), int(properties["formatted"]))
    except (KeyError, ValueError, ConfigError, InitialVotersError) as error:
        raise DataDirectoryError(
            f"{path} is damaged ({error}); restore the file, or start with an empty folder."
        ) from error


def is_folder_of_cluster(disk: Disk, folder: str) -> bool:
    return disk.exists(f"{folder}/{FILE_NAME}")


def node_count(disk: Disk, folder: str) -> str:
    """The number of nodes of the cluster, for messages; N if the file is damaged."""
    try:
        return read_properties(disk.read_file(f"{folder}/{FILE_NAME}").decode())["nodes"].value
    except (OSError, KeyError, ValueError, ConfigError):
        return "N"


def data_directories(disk: Disk, folder: str) -> list[str]:
    """Those of the nodes if the folder holds a cluster; otherwise the folder itself."""
    if not is_folder_of_cluster(disk, folder):
        return [folder]
    nodes = node_count(disk, folder)
    return [node_folder(folder, node_id) for node_id in range(1, int(nodes) + 1)] if nodes.isdecimal() else [folder]


def node_folder(directory: str, node_id: int) -> str:
    return f"{directory.rstrip('/')}/node-{node_id}"


def write_description(disk: Disk, folder: str, description: Description) -> None:
    lines = [
        "# The cluster that `quire start --nodes` runs from this folder.",
        f"cluster.id={description.cluster_id}",
        f"controllers={format_initial_voters(description.voters)}",
        f"nodes={description.nodes}",
        f"formatted={description.formatted}",
    ]
    write_atomically(disk, f"{folder}/{FILE_NAME}", "\n".join([*lines, ""]).encode())
