"""`partition.metadata`: which topic a partition's folder belongs to, by id.

Names can be used again after a topic was deleted, ids cannot: a folder with the id of a topic that is gone is not
mistaken for its successor.
"""

import logging

from quire.protocol import uuids
from quire.seams import Disk

FILE_NAME = "partition.metadata"

VERSION = 0

_log = logging.getLogger("quire.storage")


def format_partition_metadata(topic_id: bytes) -> bytes:
    return f"version: {VERSION}\ntopic_id: {uuids.to_text(topic_id)}".encode()


def parse_partition_metadata(content: bytes) -> bytes:
    """The topic id; ValueError when the file says something else."""
    fields = {name: value for name, _, value in (line.partition(": ") for line in content.decode().splitlines())}
    if fields.get("version") != str(VERSION) or "topic_id" not in fields:
        raise ValueError(f"expected version {VERSION} and a topic_id")
    return uuids.from_text(fields["topic_id"])


def read_topic_id(disk: Disk, folder: str) -> bytes | None:
    """None when the file is not there or makes no sense, as after a crash before its first sync."""
    path = f"{folder}/{FILE_NAME}"
    try:
        return parse_partition_metadata(disk.read_file(path))
    except FileNotFoundError:
        return None
    except ValueError as error:
        _log.warning("ignoring %s: %s", path, error)
        return None


def write_topic_id(disk: Disk, folder: str, topic_id: bytes) -> str:
    """Puts the file in place and returns its path, which still has to be synced.

    A crash before that may leave no file or an empty one; then there are no records yet that were promised to anyone,
    and whoever opens the partition next writes the file again.
    """
    path = f"{folder}/{FILE_NAME}"
    file = disk.open(path, create=True)
    try:
        content = format_partition_metadata(topic_id)
        file.pwritev([content], 0)
        file.truncate(len(content))
    finally:
        file.close()
    return path
