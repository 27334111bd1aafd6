"""Names of files and folders in a data directory, as in Kafka.

<data directory>/orders-3/00000000000000000170.log          a segment, named by its base offset
                          00000000000000000170.index        offset -> position
                          00000000000000000170.timeindex    timestamp -> offset
                          00000000000000000170.txnindex     aborted transactions
                          00000000000000000170.aborted      the number of these; Quire's own
                          00000000000000000170.snapshot     producer state before offset 170
<data directory>/orders-3.<32 hex digits>-delete            a deleted partition, to be removed
<data directory>/orders-3.<32 hex digits>-stray             a partition whose topic is not in the metadata
<data directory>/orders-3.<32 hex digits>-future            a copy of a partition that moves to this directory
"""

import re

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
ABORTED_COUNT = ".aborted"
SNAPSHOT = ".snapshot"

INDEXES = (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, ABORTED_COUNT)
"""Files that are useless without the `.log` of the same offset."""

DELETED = ".deleted"
"""Suffix of a file that is no longer used and will be removed soon."""
CLEANED = ".cleaned"
"""Suffix of the files of a compaction until they are complete."""
SWAP = ".swap"
"""Suffix of the complete files of a compaction until they have replaced the originals."""
TEMPORARY = ".tmp"

DELETED_FOLDER = "-delete"
STRAY_FOLDER = "-stray"
FUTURE_FOLDER = "-future"

NAME_MAX = 255

_PARTITION = re.compile(r"([A-Za-z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_FUTURE = re.compile(r"([A-Za-z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})\.[0-9a-f]{32}-future")
_OFFSET_FILE = re.compile(r"([0-9]{20})(\.[a-z]+)")


def offset_file(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def parse_offset_file(name: str) -> tuple[int, str] | None:
    """(offset, suffix) of a name such as `00000000000000000170.log`; None for any other name."""
    match = _OFFSET_FILE.fullmatch(name)
    return (int(match[1]), match[2]) if match else None


def partition_folder(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_partition_folder(name: str) -> tuple[str, int] | None:
    match = _PARTITION.fullmatch(name)
    return (match[1], int(match[2])) if match and not name.endswith((DELETED_FOLDER, STRAY_FOLDER)) else None


def deleted_folder(topic: str, partition: int, unique: bytes) -> str:
    """The folder of a deleted partition until it is removed. A long topic name is cut to fit the file system."""
    return _unique_folder(topic, partition, unique, DELETED_FOLDER)


def stray_folder(topic: str, partition: int, unique: bytes) -> str:
    """The folder of a partition whose topic is not in the metadata."""
    return _unique_folder(topic, partition, unique, STRAY_FOLDER)


def future_folder(topic: str, partition: int, unique: bytes) -> str | None:
    """The folder of a partition's future log. None if the name would be too long: it must not be cut, to be parsed."""
    name = f"{topic}-{partition}.{unique.hex()}{FUTURE_FOLDER}"
    return name if len(name) <= NAME_MAX else None


def parse_future_folder(name: str) -> tuple[str, int] | None:
    match = _FUTURE.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def _unique_folder(topic: str, partition: int, unique: bytes, kind: str) -> str:
    suffix = f"-{partition}.{unique.hex()}{kind}"
    return topic[: NAME_MAX - len(suffix)] + suffix


def is_deleted_folder(name: str) -> bool:
    return re.fullmatch(r".+-[0-9]+\.[0-9a-f]{32}-delete", name) is not None
