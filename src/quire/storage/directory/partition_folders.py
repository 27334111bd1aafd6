"""The folders in a data directory: of partitions, of deleted partitions, and others."""

import logging
from typing import NamedTuple

from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.seams import Disk
from quire.storage import file_names
from quire.storage.directory.checkpoints import TopicPartition

_log = logging.getLogger("quire.storage")


class PartitionFolders(NamedTuple):
    partitions: list[TopicPartition]
    """Without the metadata log, which its owner opens."""
    deleted: list[str]
    """Folders of deleted partitions, whose removal was interrupted."""
    futures: list[tuple[TopicPartition, str]]
    """Future logs, with the names of their folders."""


def list_folders(disk: Disk, path: str) -> PartitionFolders:
    """Leaves alone, with a warning, what is not the folder of a partition."""
    folders = PartitionFolders([], [], [])
    for name in disk.list_dir(path):
        key = file_names.parse_partition_folder(name)
        if file_names.is_deleted_folder(name):
            folders.deleted.append(f"{path}/{name}")
        elif (future := file_names.parse_future_folder(name)) is not None:
            folders.futures.append((future, name))
        elif key is not None and key[0] != CLUSTER_METADATA:
            folders.partitions.append(key)
        elif key is None and disk.is_dir(f"{path}/{name}"):
            _log.warning("leaving %s/%s alone: it is not the folder of a partition", path, name)
    return folders
