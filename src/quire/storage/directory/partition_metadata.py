"""`partition.metadata`: which topic a partition's folder belongs to, by id.

A new topic may have the name of a deleted one, but never its id. So the folder of a deleted topic is not mistaken for
that of the new one.
"""

import logging

from quire.protocol import uuids
from quire.seams import Disk
from quire.storage.whole_file import write_whole

FILE_NAME = "partition.metadata"

VERSION = 0

_log = logging.getLogger("quire.storage")


def format_partition_metadata(topic_id: bytes) -> bytes:
    return f"version: {VERSION}\ntopic_id: {uuids.to_text(topic_id)}".encode()


def parse_partition_metadata(content: bytes) -> bytes:
    """The topic id; ValueError if the file is not valid."""
    fields = {name: value for name, _, value in (line.partition(": ") for line in content.decode().splitlines())}
    if fields.get("version") != str(VERSION) or "topic_id" not in fields:
        raise ValueError(f"expected version {VERSION} and a topic_id")
    return uuids.from_text(fields["topic_id"])


def read_topic_id(disk: Disk, folder: str) -> bytes | None:
    """The topic id; None if the file is missing or invalid, as after a crash before its first sync."""
    path = f"{folder}/{FILE_NAME}"
    try:
        return parse_partition_metadata(disk.read_file(path))
    except FileNotFoundError:
        return None
    except ValueError as error:
        _log.warning("ignoring %s: %s", path, error)
        return None


def write_topic_id(disk: Disk, folder: str, topic_id: bytes) -> str:
    """Writes the file and returns its path; the caller must sync it.

    A crash before that may leave no file or an empty one. No record of the partition is durable then, and the next
    start writes the file again.
    """
    path = f"{folder}/{FILE_NAME}"
    write_whole(disk, path, format_partition_metadata(topic_id))
    return path
