"""Kafka's checkpoint files: a version, a count, and a line for each entry.

A data directory has four, each with a line `topic partition offset` per partition: recovery points (everything below is
synced), log start offsets, high watermarks and how far a log is compacted. A partition's `leader-epoch-checkpoint` has
the same format with other lines. All are replaced atomically, so a reader finds the complete old or new file.
"""

import logging
from collections.abc import Iterable, Mapping

from quire.seams import Disk
from quire.seams.disk import write_atomically

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"

VERSION = 0

_log = logging.getLogger("quire.storage")

TopicPartition = tuple[str, int]


class CheckpointError(Exception):
    """A checkpoint file is not valid."""


def format_checkpoint(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "\n".join([str(VERSION), str(len(entries)), *entries, ""]).encode()


def parse_checkpoint(content: bytes, path: str) -> list[str]:
    if not content:
        # Apache Kafka creates its checkpoint files empty.
        return []
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is not text") from error
    if len(lines) < 2 or not lines[1].isdecimal():
        raise CheckpointError(f"{path} has no version and count")
    if lines[0] != str(VERSION):
        raise CheckpointError(f"{path} has version {lines[0]!r}; only {VERSION} is known")
    entries = [line for line in lines[2:] if line]
    if len(entries) != int(lines[1]):
        raise CheckpointError(f"{path} announces {lines[1]} entries and has {len(entries)}")
    return entries


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return format_checkpoint(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def parse_offsets(content: bytes, path: str) -> dict[TopicPartition, int]:
    offsets = {}
    for line in parse_checkpoint(content, path):
        fields = line.split(" ")
        if len(fields) != 3 or not fields[1].isdecimal() or not fields[2].isdecimal():
            raise CheckpointError(f"{path}: {line!r} is not a topic, a partition and an offset")
        offsets[fields[0], int(fields[1])] = int(fields[2])
    return offsets


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """Empty if there is no such file; CheckpointError if it is not valid."""
    try:
        return parse_offsets(disk.read_file(path), path)
    except FileNotFoundError:
        return {}


def read_if_sensible(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """As `read_offsets`; empty, with a warning, if the file is not valid."""
    try:
        return read_offsets(disk, path)
    except CheckpointError as error:
        _log.warning("ignoring a checkpoint: %s", error)
        return {}


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    write_atomically(disk, path, format_offsets(offsets))
