"""Names of files and folders in a data directory: the one place that knows how Kafka spells them.

<data directory>/orders-3/00000000000000000170.log          a segment, named by its base offset
                          00000000000000000170.index        offset -> position
                          00000000000000000170.timeindex    timestamp -> offset
                          00000000000000000170.txnindex     aborted transactions
                          00000000000000000170.aborted      how many these are; Quire's own
                          00000000000000000170.snapshot     producers as they were before offset 170
<data directory>/orders-3.<32 hex digits>-delete            a partition on its way out
<data directory>/orders-3.<32 hex digits>-stray             a partition of a topic that nobody knows
"""

import re

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
ABORTED_COUNT = ".aborted"
SNAPSHOT = ".snapshot"

INDEXES = (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, ABORTED_COUNT)
"""What means nothing without the log of the same offset."""

DELETED = ".deleted"
"""Appended to a file that is out of use and will be removed soon."""
CLEANED = ".cleaned"
"""Appended to what a compaction writes until it is complete."""
SWAP = ".swap"
"""Appended to what a compaction has completed until it stands in place of what it replaces."""
TEMPORARY = ".tmp"

DELETED_FOLDER = "-delete"
STRAY_FOLDER = "-stray"

NAME_MAX = 255

_PARTITION = re.compile(r"([A-Za-z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_OFFSET_FILE = re.compile(r"([0-9]{20})(\.[a-z]+)")


def offset_file(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def parse_offset_file(name: str) -> tuple[int, str] | None:
    """(offset, suffix) of `00000000000000000170.log` and its like; None for any other name."""
    match = _OFFSET_FILE.fullmatch(name)
    return (int(match[1]), match[2]) if match else None


def partition_folder(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_partition_folder(name: str) -> tuple[str, int] | None:
    match = _PARTITION.fullmatch(name)
    return (match[1], int(match[2])) if match and not name.endswith((DELETED_FOLDER, STRAY_FOLDER)) else None


def deleted_folder(topic: str, partition: int, unique: bytes) -> str:
    """Where a deleted partition waits for its removal. A long topic name is cut to what a file system allows."""
    return _unique_folder(topic, partition, unique, DELETED_FOLDER)


def stray_folder(topic: str, partition: int, unique: bytes) -> str:
    """Where a partition is kept whose topic is not in the metadata."""
    return _unique_folder(topic, partition, unique, STRAY_FOLDER)


def _unique_folder(topic: str, partition: int, unique: bytes, kind: str) -> str:
    suffix = f"-{partition}.{unique.hex()}{kind}"
    return topic[: NAME_MAX - len(suffix)] + suffix


def is_deleted_folder(name: str) -> bool:
    return re.fullmatch(r".+-[0-9]+\.[0-9a-f]{32}-delete", name) is not None
