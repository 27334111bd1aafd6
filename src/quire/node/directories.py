"""Taking the data directories at start: each locked, and all of one cluster and node.

Empty directories of a node that is alone are formatted. In a cluster the directory of the metadata log must have been
formatted by an operator or the supervisor: a voter whose disk was emptied must not return without the votes it has
given, nor the only voter as that of another cluster.

A start that must not use a directory leaves nothing in it: the directories are checked before the first one is locked,
which creates a file, and again under the locks.
"""

from collections.abc import Mapping
from contextlib import suppress

from quire.config.broker_config import BrokerConfig
from quire.controller.format import check_for_foreign_files, format_node, unfinished_formatting
from quire.metadata.image import ClusterImage
from quire.seams import Clock, Disk, Jobs, Random
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.log_directory import LOCK_FILE, LogDirectory, OnFailure
from quire.storage.directory.meta_properties import MetaProperties, read_meta
from quire.storage.errors import DataDirectoryError, unusable_directory

IGNORED_WHEN_EMPTY = (LOCK_FILE, "lost+found")


def open_directories(
    config: BrokerConfig,
    *,
    may_format: bool,
    disk: Disk,
    clock: Clock,
    jobs: Jobs,
    random: Random,
    on_failure: OnFailure,
) -> dict[str, LogDirectory]:
    """The directories by path, that of the metadata log among them; DataDirectoryError when one must not be used.

    `may_format` is false if the caller has formatted the node: a directory that is empty was lost.

    One whose disk does not work is offline from the start and the others serve, as if it had failed later; but not
    without the metadata log, nor when no directory works.
    """
    formats_itself = may_format and config.topology.is_alone
    _refuse_foreign(disk, config, formats_itself)
    opened: dict[str, LogDirectory] = {}
    unusable: dict[str, OSError] = {}
    try:
        for path in config.data_dirs:
            try:
                opened[path] = LogDirectory.open(
                    disk, path, clock=clock, jobs=jobs, random=random, on_failure=on_failure
                )
                if opened[path].meta is None:
                    _check_empty(disk, path)
            except (DataDirectoryError, OSError) as error:
                cause = error if isinstance(error, OSError) else error.__cause__
                if not isinstance(cause, OSError) or path == config.metadata_log_dir:
                    raise unusable_directory(path, error) if isinstance(error, OSError) else error from cause
                unusable[path] = cause
                if path in opened:
                    opened.pop(path).release()
        if all(path in unusable for path in config.log_dirs):
            first = next(iter(unusable.values()))
            raise DataDirectoryError(f"no data directory can be used ({first}); make one writable, or change log.dirs.")
        metas = {path: directory.meta for path, directory in opened.items()}
        _check_that_metadata_is_not_lost(config, metas, formats_itself)
        empty = [path for path, meta in metas.items() if meta is None]
        is_new_node = len(empty) == len(opened)
        format_node(disk, random, config, now_ms=clock.now_ms(), unusable=unusable)
        cluster_id = None
        for path, directory in opened.items():
            directory.meta = meta = _formatted(disk, path)
            meta.check(path, cluster_id=cluster_id, node_id=config.node_id)
            cluster_id = meta.cluster_id
            directory.is_new = path in empty and not is_new_node
    except BaseException:
        for directory in opened.values():
            directory.release()
        raise
    for path, cause in unusable.items():
        opened[path] = LogDirectory.offline(
            disk, path, cause, clock=clock, jobs=jobs, random=random, on_failure=on_failure
        )
    return opened


def check_that_no_log_is_there_twice(directories: list[LogDirectory], image: ClusterImage) -> None:
    """Refuses two logs of one partition: either may be an outdated copy, and there is no way to decide.

    A log whose folder has the id of a deleted topic belongs to no partition.
    """
    first: dict[TopicPartition, LogDirectory] = {}
    for directory in directories:
        for key in directory.logs:
            topic = image.topic(key[0])
            if topic is None or directory.topic_ids[key] not in (None, topic.topic_id):
                continue
            other = first.setdefault(key, directory)
            if other is not directory:
                raise DataDirectoryError(
                    f"{key[0]}-{key[1]} is both in {other.path} and in {directory.path}; "
                    "move the folder that is out of date elsewhere, and start again."
                )


def _refuse_foreign(disk: Disk, config: BrokerConfig, formats_itself: bool) -> None:
    """DataDirectoryError if a directory is of another program, node or cluster. Only reads."""
    metas: dict[str, MetaProperties | None] = {}
    for path in config.data_dirs:
        with suppress(OSError):  # A directory that cannot be read is reported when it is opened.
            meta = read_meta(disk, path)
            if meta is None and disk.is_dir(path):
                _check_empty(disk, path)
            metas[path] = meta
    _check_that_metadata_is_not_lost(config, metas, formats_itself)
    cluster_id = None
    for path, meta in metas.items():
        if meta is not None:
            meta.check(path, cluster_id=cluster_id, node_id=config.node_id)
            cluster_id = meta.cluster_id


def _check_that_metadata_is_not_lost(
    config: BrokerConfig, metas: Mapping[str, MetaProperties | None], formats_itself: bool
) -> None:
    folder = config.metadata_log_dir
    if folder in metas and metas[folder] is None and any(metas.values()):
        raise DataDirectoryError(
            f"{folder} should hold the metadata log and is empty, though others are not; "
            "mount or restore it, or start a new node with empty directories."
        )
    if folder in metas and metas[folder] is None and not formats_itself:
        raise DataDirectoryError(_not_formatted(config))


def _not_formatted(config: BrokerConfig) -> str:
    topology, command = config.topology, "`quire storage format --cluster-id ID`"
    start = f"{config.metadata_log_dir} is not formatted"
    if topology.is_alone:
        return (
            f"{start}, although it was: restore it, because this is the only controller, and the metadata of the "
            "cluster is lost without it; for a new cluster, choose another directory."
        )
    if not topology.is_controller:
        return f"{start}: run {command} with the id of the cluster that this broker is to join."
    start = f"{start}, and only a node that is alone formats its directory itself"
    if topology.voters:
        return (
            f"{start}: if the cluster is new, run {command}; if this disk was lost, restore it, because a static "
            "quorum cannot tell that this voter has forgotten its votes."
        )
    return (
        f"{start}: run {command} with --initial-controllers if the cluster is new, or with --no-initial-controllers "
        "if it exists already or this disk was lost."
    )


def _check_empty(disk: Disk, path: str) -> None:
    """Refuses a directory with data but without meta.properties: it must not be treated as a new one."""
    check_for_foreign_files(disk, path)
    ignored = (*IGNORED_WHEN_EMPTY, *unfinished_formatting(disk, path))
    found = [name for name in disk.list_dir(path) if name not in ignored]
    if found:
        raise DataDirectoryError(
            f"{path} holds {found[0]} but no meta.properties, so its cluster and node are unknown; "
            "restore that file, let `quire storage format` write it again, or start with an empty directory."
        )


def _formatted(disk: Disk, path: str) -> MetaProperties:
    meta = read_meta(disk, path)
    assert meta is not None, f"{path} was formatted and has no meta.properties"
    return meta
