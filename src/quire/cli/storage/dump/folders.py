"""The kind of a file by its name, and the order of the files of a folder.

In a data directory, its own small files come first, then each partition. In a partition, its small files come first,
then each segment: the producer snapshot at its start, the log, and its indexes last.
"""

import re
from collections.abc import Callable
from enum import Enum

from quire.protocol import internal_topics
from quire.raft import quorum_state, snapshot_file
from quire.storage import file_names, leader_epochs
from quire.storage.directory import checkpoints, clean_shutdown, meta_properties, partition_metadata, registration_mark


class Kind(Enum):
    """The values are the names that people see."""

    LOG = "segment"
    OFFSET_INDEX = "offset index"
    TIME_INDEX = "time index"
    TRANSACTION_INDEX = "aborted transactions"
    PRODUCERS = "producers"
    METADATA_SNAPSHOT = "metadata snapshot"
    OFFSETS = "offset checkpoint"
    LEADER_EPOCHS = "leader epochs"
    PARTITION_METADATA = "partition metadata"
    META_PROPERTIES = "owner of the directory"
    QUORUM_STATE = "quorum state"
    CLEAN_SHUTDOWN = "mark of a clean stop"
    REGISTRATION = "registration of the broker"


class Contents(Enum):
    """What the records of a log contain; the values are the choices of `--as`."""

    OFFSETS = "offsets"
    TRANSACTIONS = "transactions"
    SHARES = "shares"
    METADATA = "metadata"
    PLAIN = "plain"


_BY_NAME = {
    meta_properties.FILE_NAME: Kind.META_PROPERTIES,
    clean_shutdown.FILE_NAME: Kind.CLEAN_SHUTDOWN,
    registration_mark.FILE_NAME: Kind.REGISTRATION,
    checkpoints.RECOVERY_POINTS: Kind.OFFSETS,
    checkpoints.LOG_START_OFFSETS: Kind.OFFSETS,
    checkpoints.HIGH_WATERMARKS: Kind.OFFSETS,
    checkpoints.CLEANED_OFFSETS: Kind.OFFSETS,
    partition_metadata.FILE_NAME: Kind.PARTITION_METADATA,
    leader_epochs.FILE_NAME: Kind.LEADER_EPOCHS,
    quorum_state.FILE_NAME: Kind.QUORUM_STATE,
}
_BY_SUFFIX = {
    file_names.SNAPSHOT: Kind.PRODUCERS,
    file_names.LOG: Kind.LOG,
    file_names.OFFSET_INDEX: Kind.OFFSET_INDEX,
    file_names.TIME_INDEX: Kind.TIME_INDEX,
    file_names.TRANSACTION_INDEX: Kind.TRANSACTION_INDEX,
    snapshot_file.SUFFIX: Kind.METADATA_SNAPSHOT,
}
_ORDER = {kind: number for number, kind in enumerate([*_BY_NAME.values(), *_BY_SUFFIX.values()])}

# Suffixes such as .deleted and .swap do not change the kind of a file.
_ON_THE_WAY = re.compile(r"((\.[0-9]+)?\.deleted|\.cleaned|\.swap|\.part|\.tmp)+$")

_CONTENTS = {
    internal_topics.GROUP_OFFSETS: Contents.OFFSETS,
    internal_topics.TRANSACTION_STATE: Contents.TRANSACTIONS,
    internal_topics.SHARE_GROUP_STATE: Contents.SHARES,
    internal_topics.CLUSTER_METADATA: Contents.METADATA,
}


def kind_of(path: str) -> Kind | None:
    """None for a file that does not belong in a data directory."""
    name = _ON_THE_WAY.sub("", _name(path))
    if name in _BY_NAME:
        return _BY_NAME[name]
    return next((kind for suffix, kind in _BY_SUFFIX.items() if name.endswith(suffix)), None)


def base_offset_of(path: str) -> int | None:
    """The offset in the name of a segment's file."""
    number, dot, _ = _name(path).partition(".")
    return int(number) if dot and number.isdecimal() else None


def log_beside(index_path: str) -> str:
    """The log of an index; for an index with a suffix such as .deleted, the log with the same suffix."""
    folder, slash, name = index_path.rpartition("/")
    stem, _, rest = name.partition(".")
    _, dot, on_the_way = rest.partition(".")
    return f"{folder}{slash}{stem}{file_names.LOG}{dot}{on_the_way}"


def contents_of(path: str) -> Contents:
    """The contents of a log or metadata snapshot, by its folder."""
    if kind_of(path) is Kind.METADATA_SNAPSHOT:
        return Contents.METADATA
    folder = path.rpartition("/")[0].rpartition("/")[2]
    topic = re.sub(r"-[0-9]+(\.[0-9a-f]{32}-(delete|stray))?$", "", folder)
    return _CONTENTS.get(topic, Contents.PLAIN)


def in_order(folder: str, names: list[str], is_dir: Callable[[str], bool]) -> list[str]:
    """The paths in a folder that dump-log shows, including folders."""
    files = [f"{folder}/{name}" for name in names if kind_of(name) is not None and not is_dir(f"{folder}/{name}")]
    folders = [f"{folder}/{name}" for name in names if is_dir(f"{folder}/{name}")]
    return sorted(files, key=_file_order) + sorted(folders, key=_partition_order)


def _file_order(path: str) -> tuple[int, int, str]:
    kind = kind_of(path)
    assert kind is not None
    offset = base_offset_of(path)
    return (-1 if offset is None else offset, _ORDER[kind], path)


def _partition_order(path: str) -> tuple[str, int, str]:
    topic, _, partition = _name(path).rpartition("-")
    return (topic, int(partition), path) if partition.isdecimal() else (_name(path), -1, path)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
