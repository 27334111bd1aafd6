"""Formatting: the first files of a data directory, as Kafka's `kafka-storage format` writes them.

    meta.properties                                                     whose directory this is
    bootstrap.checkpoint                                                the features the cluster starts with
    __cluster_metadata-0/00000000000000000000-0000000000.checkpoint     who votes at first, in a dynamic quorum

Only the first voters have the last file: the settings name the voters of a static quorum, and all other nodes learn
them from the log. `meta.properties` is written last, so a directory in which a crash interrupted formatting is
formatted again. One that has only lost this file gets it back, and remains the voter that its metadata log names.
"""

from collections.abc import Collection, Mapping

from quire.config.broker_config import BrokerConfig
from quire.metadata.features import FORMAT_LEVELS, METADATA_VERSION, check_supported
from quire.protocol import uuids
from quire.protocol.messages.metadata_records import FeatureLevelRecord
from quire.raft import snapshot_file
from quire.raft.control_state import NO_VOTERS
from quire.raft.log_store import FOLDER
from quire.raft.log_summary import LogPosition
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.seams import Disk, Random
from quire.storage import file_names
from quire.storage.directory import checkpoints, clean_shutdown, registration_mark, reserve
from quire.storage.directory.durable_folder import make_durable_folder
from quire.storage.directory.log_directory import LOCK_FILE
from quire.storage.directory.meta_properties import FILE_NAME, MetaProperties, read_meta, write_meta
from quire.storage.errors import DataDirectoryError

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
    registration_mark.FILE_NAME,
    f"{registration_mark.FILE_NAME}.tmp",
    "remote-log-index-cache",
)
_OUR_FOLDERS = (file_names.DELETED_FOLDER, file_names.STRAY_FOLDER, "-future")
"""The files of a data directory, Quire's or Kafka's, besides the folders of partitions."""


def new_cluster_id(random: Random) -> str:
    return uuids.to_text(random.uuid())


def format_node(
    disk: Disk,
    random: Random,
    config: BrokerConfig,
    *,
    now_ms: int,
    cluster_id: str | None = None,
    initial_voters: VoterSet | None = None,
    levels: Mapping[str, int] = FORMAT_LEVELS,
    unusable: Collection[str] = (),
) -> str:
    """Formats the node's data directories that are usable and not formatted; returns the cluster's id.

    `initial_voters` are the first voters of a dynamic quorum: by default this controller alone, and `NO_VOTERS` for a
    node that learns them from the log. If this node is one of them, the set names its directory.

    Directories that are formatted keep their ids and name the cluster. The directory of the metadata log comes first:
    if another one is formatted and this one is not, the metadata log was lost.
    """
    directories = [each for each in config.data_dirs if each not in unusable]
    directories.sort(key=lambda each: each != config.metadata_log_dir)
    for directory in directories:
        check_for_foreign_files(disk, directory)
    known = [meta.cluster_id for meta in (read_meta(disk, each) for each in directories) if meta is not None]
    cluster_id = cluster_id or (known[0] if known else new_cluster_id(random))
    for directory in directories:
        if read_meta(disk, directory) is not None:
            continue
        ran_before = _has_metadata_log(disk, directory)
        directory_id = _voting_directory_id(disk, directory, config) if ran_before else None
        voters = NO_VOTERS
        if directory == config.metadata_log_dir and not ran_before:
            voters = _alone(config, random) if initial_voters is None else initial_voters
        own = voters.get(config.node_id)
        if own is not None:
            directory_id = own.key.directory_id
        format_directory(
            disk,
            directory,
            MetaProperties(cluster_id, config.node_id, directory_id or random.uuid()),
            now_ms=now_ms,
            levels=levels,
            voters=voters if own is not None else None,
        )
    return cluster_id


def _alone(config: BrokerConfig, random: Random) -> VoterSet:
    """This controller as the only voter, in a new directory; no voters if the settings name them."""
    if config.topology.voters or not config.topology.is_controller:
        return NO_VOTERS
    endpoints = (Endpoint(each.name, each.host, each.port) for each in config.topology.advertised_controller_listeners)
    return VoterSet([Voter(ReplicaKey(config.node_id, random.uuid()), tuple(endpoints))])


def format_directory(
    disk: Disk,
    directory: str,
    meta: MetaProperties,
    *,
    now_ms: int,
    levels: Mapping[str, int] = FORMAT_LEVELS,
    voters: VoterSet | None = None,
) -> None:
    """Writes one directory. With `voters` it is that of one of the first voters of a dynamic quorum."""
    for name, level in levels.items():
        check_supported(name, level)
    make_durable_folder(disk, directory)
    # Kafka reads metadata.version before anything that depends on it.
    ordered = sorted(levels, key=lambda name: (name != METADATA_VERSION, name))
    features = [(FeatureLevelRecord(name=name, feature_level=levels[name]), 0) for name in ordered if levels[name]]
    bootstrap = snapshot_file.encode_snapshot(features, epoch=0, now_ms=now_ms, last_contained_timestamp_ms=0)
    snapshot_file.write_snapshot(disk, directory, snapshot_file.BOOTSTRAP_NAME, bootstrap)
    if voters is not None:
        _write_voters(disk, directory, voters, now_ms)
    write_meta(disk, directory, meta)


def unfinished_formatting(disk: Disk, directory: str) -> list[str]:
    """Names in a directory without `meta.properties` that a crash while formatting leaves: they are not data."""
    names = [snapshot_file.BOOTSTRAP_NAME, _UNFINISHED_BOOTSTRAP, f"{FILE_NAME}.tmp"]
    if disk.is_dir(f"{directory}/{FOLDER}") and not _has_metadata_log(disk, directory):
        names.append(FOLDER)
    return names


def check_for_foreign_files(disk: Disk, directory: str) -> None:
    """DataDirectoryError if a directory that is not formatted contains something that no data directory has."""
    if not disk.is_dir(directory) or disk.exists(f"{directory}/{FILE_NAME}"):
        return
    for name in disk.list_dir(directory):
        is_folder_of_ours = file_names.parse_partition_folder(name) is not None or name.endswith(_OUR_FOLDERS)
        if not is_folder_of_ours and name.removesuffix(file_names.TEMPORARY) not in _OUR_NAMES:
            raise DataDirectoryError(
                f"{directory} contains {name}, which does not belong to a data directory, and no {FILE_NAME}; "
                "point log.dirs to an empty directory, or move the contents of this one elsewhere."
            )


def _has_metadata_log(disk: Disk, directory: str) -> bool:
    """Whether it holds more than formatting writes."""
    folder = f"{directory}/{FOLDER}"
    voters = snapshot_file.file_name(LogPosition(0, 0)).removesuffix(snapshot_file.SUFFIX)
    return disk.is_dir(folder) and not all(name.startswith(voters) for name in disk.list_dir(folder))


def _voting_directory_id(disk: Disk, directory: str, config: BrokerConfig) -> bytes | None:
    """The id that the directory had according to its metadata log; None if the log does not say it."""
    folder = f"{directory}/{FOLDER}"
    for position in reversed(snapshot_file.list_snapshots(disk, folder)):
        try:
            voters = snapshot_file.read_snapshot(disk, folder, snapshot_file.file_name(position)).control.voters
        except snapshot_file.SnapshotError:
            continue
        found = {voter.key.id: voter.key.directory_id for voter in voters or ()}
        # In a larger cluster it may be the log of a node that does not vote.
        if len(found) == 1 and config.node_id not in found and config.topology.is_alone:
            (id_,) = found
            raise DataDirectoryError(f"{directory} has the metadata log of node {id_}; set node.id={id_}.")
        return found.get(config.node_id)
    return None


def _write_voters(disk: Disk, directory: str, voters: VoterSet, now_ms: int) -> None:
    folder = f"{directory}/{FOLDER}"
    disk.make_dirs(folder)
    disk.sync_dir(directory)
    snapshot = snapshot_file.encode_snapshot(
        [],
        epoch=0,
        now_ms=now_ms,
        last_contained_timestamp_ms=now_ms,
        kraft_version=KRAFT_VERSION,
        voters=voters,
    )
    snapshot_file.write_snapshot(disk, folder, snapshot_file.file_name(LogPosition(0, 0)), snapshot)
