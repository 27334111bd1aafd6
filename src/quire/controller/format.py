"""Formatting: the first files of a data directory, as Kafka's `kafka-storage format` writes them.

    meta.properties                                                     whose directory this is
    bootstrap.checkpoint                                                the features the cluster starts with
    __cluster_metadata-0/00000000000000000000-0000000000.checkpoint     who votes, in a dynamic quorum of one

`meta.properties` comes last, so a directory that was being formatted in a crash is still one to be formatted. One that
has merely lost this file gets it back, and stays the voter that its metadata log knows.
"""

from collections.abc import Collection, Mapping, Sequence

from quire.config.broker_config import BrokerConfig
from quire.metadata.features import FORMAT_LEVELS, METADATA_VERSION, check_supported
from quire.protocol import uuids
from quire.protocol.messages.metadata_records import FeatureLevelRecord
from quire.raft import snapshot_file
from quire.raft.log_store import FOLDER
from quire.raft.log_summary import LogPosition
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.seams import Disk, Random
from quire.storage import checkpoints, clean_shutdown, file_names, reserve
from quire.storage.errors import DataDirectoryError
from quire.storage.log_directory import LOCK_FILE
from quire.storage.meta_properties import FILE_NAME, MetaProperties, read_meta, write_meta

KRAFT_VERSION = 1

_UNFINISHED_BOOTSTRAP = (
    snapshot_file.BOOTSTRAP_NAME.removesuffix(snapshot_file.SUFFIX) + snapshot_file.UNFINISHED_SUFFIX
)
_OUR_NAMES = (
    LOCK_FILE,
    "lost+found",
    clean_shutdown.FILE_NAME,
    checkpoints.RECOVERY_POINTS,
    checkpoints.LOG_START_OFFSETS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.CLEANED_OFFSETS,
    snapshot_file.BOOTSTRAP_NAME,
    _UNFINISHED_BOOTSTRAP,
    FILE_NAME,
    reserve.FILE_NAME,
    "remote-log-index-cache",
)
_OUR_FOLDERS = (file_names.DELETED_FOLDER, file_names.STRAY_FOLDER, "-future")
"""What Quire or Kafka have in a data directory, besides the folders of partitions."""


def new_cluster_id(random: Random) -> str:
    return uuids.to_text(random.uuid())


def format_node(
    disk: Disk,
    random: Random,
    config: BrokerConfig,
    *,
    now_ms: int,
    cluster_id: str | None = None,
    levels: Mapping[str, int] = FORMAT_LEVELS,
    unusable: Collection[str] = (),
) -> str:
    """Formats those of the node's data directories that are not, but for the unusable; returns the cluster's id.

    Directories that are formatted already keep their ids and say which cluster it is. That of the metadata log comes
    first: if it is not formatted and another one is, then it was lost.
    """
    directories = [each for each in config.data_dirs if each not in unusable]
    directories.sort(key=lambda each: each != config.metadata_log_dir)
    for directory in directories:
        check_for_strangers(disk, directory)
    known = [meta.cluster_id for meta in (read_meta(disk, each) for each in directories) if meta is not None]
    cluster_id = cluster_id or (known[0] if known else new_cluster_id(random))
    endpoints = [
        Endpoint(listener.name, listener.host or "localhost", listener.port)
        for listener in config.topology.controller_listeners
    ]
    for directory in directories:
        if read_meta(disk, directory) is not None:
            continue
        ran_before = _has_metadata_log(disk, directory)
        votes_here = directory == config.metadata_log_dir and not config.topology.voters and not ran_before
        directory_id = _voting_directory_id(disk, directory, config.node_id) if ran_before else None
        format_directory(
            disk,
            directory,
            MetaProperties(cluster_id, config.node_id, directory_id or random.uuid()),
            now_ms=now_ms,
            levels=levels,
            voter_endpoints=endpoints if votes_here else None,
        )
    return cluster_id


def format_directory(
    disk: Disk,
    directory: str,
    meta: MetaProperties,
    *,
    now_ms: int,
    levels: Mapping[str, int] = FORMAT_LEVELS,
    voter_endpoints: Sequence[Endpoint] | None = None,
) -> None:
    """Writes one directory. `voter_endpoints` make it that of a quorum of one, with these addresses."""
    for name, level in levels.items():
        check_supported(name, level)
    disk.make_dirs(directory)
    disk.sync_dir(directory.rpartition("/")[0] or ".")
    # Kafka reads metadata.version before anything that depends on it.
    ordered = sorted(levels, key=lambda name: (name != METADATA_VERSION, name))
    features = [(FeatureLevelRecord(name=name, feature_level=levels[name]), 0) for name in ordered if levels[name]]
    bootstrap = snapshot_file.encode_snapshot(features, epoch=0, now_ms=now_ms, last_contained_timestamp_ms=0)
    snapshot_file.write_snapshot(disk, directory, snapshot_file.BOOTSTRAP_NAME, bootstrap)
    if voter_endpoints is not None:
        _write_voters(disk, directory, meta, voter_endpoints, now_ms)
    write_meta(disk, directory, meta)


def unfinished_formatting(disk: Disk, directory: str) -> list[str]:
    """Names in a directory without `meta.properties` that are what a crash while formatting leaves, not data."""
    names = [snapshot_file.BOOTSTRAP_NAME, _UNFINISHED_BOOTSTRAP, f"{FILE_NAME}.tmp"]
    if disk.is_dir(f"{directory}/{FOLDER}") and not _has_metadata_log(disk, directory):
        names.append(FOLDER)
    return names


def check_for_strangers(disk: Disk, directory: str) -> None:
    """DataDirectoryError if a directory that is not formatted has something in it that no data directory has."""
    if not disk.is_dir(directory) or disk.exists(f"{directory}/{FILE_NAME}"):
        return
    for name in disk.list_dir(directory):
        is_folder_of_ours = file_names.parse_partition_folder(name) is not None or name.endswith(_OUR_FOLDERS)
        if not is_folder_of_ours and name.removesuffix(file_names.TEMPORARY) not in _OUR_NAMES:
            raise DataDirectoryError(
                f"{directory} holds {name}, which is not of a data directory, and no {FILE_NAME}; "
                "point log.dirs to an empty directory, or move what is in this one elsewhere."
            )


def _has_metadata_log(disk: Disk, directory: str) -> bool:
    """Whether there is more of it than formatting leaves."""
    folder = f"{directory}/{FOLDER}"
    voters = snapshot_file.file_name(LogPosition(0, 0)).removesuffix(snapshot_file.SUFFIX)
    return disk.is_dir(folder) and not all(name.startswith(voters) for name in disk.list_dir(folder))


def _voting_directory_id(disk: Disk, directory: str, node_id: int) -> bytes | None:
    """The id that the directory had, as its metadata log knows it; None if that has no voters, or none can be read."""
    folder = f"{directory}/{FOLDER}"
    for position in reversed(snapshot_file.list_snapshots(disk, folder)):
        try:
            voters = snapshot_file.read_snapshot(disk, folder, snapshot_file.file_name(position)).control.voters
        except snapshot_file.SnapshotError:
            continue
        found = {voter.key.id: voter.key.directory_id for voter in voters or ()}
        if voters is not None and node_id not in found:
            ids = ", ".join(map(str, found))
            raise DataDirectoryError(f"{directory} has the metadata log of node {ids}; set node.id={ids}.")
        return found.get(node_id)
    return None


def _write_voters(disk: Disk, directory: str, meta: MetaProperties, endpoints: Sequence[Endpoint], now_ms: int) -> None:
    folder = f"{directory}/{FOLDER}"
    disk.make_dirs(folder)
    disk.sync_dir(directory)
    voter = Voter(ReplicaKey(meta.node_id, meta.directory_id), tuple(endpoints))
    snapshot = snapshot_file.encode_snapshot(
        [],
        epoch=0,
        now_ms=now_ms,
        last_contained_timestamp_ms=now_ms,
        kraft_version=KRAFT_VERSION,
        voters=VoterSet([voter]),
    )
    snapshot_file.write_snapshot(disk, folder, snapshot_file.file_name(LogPosition(0, 0)), snapshot)
