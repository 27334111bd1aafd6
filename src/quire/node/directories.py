"""Taking the data directories at start: each locked, formatted where it is empty, and all of one cluster and node."""

from quire.config.broker_config import BrokerConfig
from quire.controller.format import check_for_strangers, format_node, unfinished_formatting
from quire.metadata.image import ClusterImage
from quire.seams import Clock, Disk, Jobs, Random
from quire.storage.checkpoints import TopicPartition
from quire.storage.errors import DataDirectoryError, unusable_directory
from quire.storage.log_directory import LOCK_FILE, LogDirectory, OnFailure
from quire.storage.meta_properties import MetaProperties, read_meta

IGNORED_WHEN_EMPTY = (LOCK_FILE, "lost+found")


def open_directories(
    config: BrokerConfig, *, disk: Disk, clock: Clock, jobs: Jobs, random: Random, on_failure: OnFailure
) -> dict[str, LogDirectory]:
    """The directories by path, that of the metadata log among them; DataDirectoryError when one must not be used.

    One whose disk does not work is offline from the start and the others serve, as if it had failed later; but not
    without the metadata log, nor when no directory works.
    """
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
        empty = [path for path, directory in opened.items() if directory.meta is None]
        is_new_node = len(empty) == len(opened)
        if config.metadata_log_dir in empty and not is_new_node:
            raise DataDirectoryError(
                f"{config.metadata_log_dir} should hold the metadata log and is empty, though others are not; "
                "mount or restore it, or start a new node with empty directories."
            )
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
    """Of two logs of one partition nobody can tell which one is right: either may be a copy that was left behind.

    A log whose folder says that it is of another topic, one that is gone, is of no partition.
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


def _check_empty(disk: Disk, path: str) -> None:
    """A directory that has data but not the file that says whose it is must not be taken for a new one."""
    check_for_strangers(disk, path)
    ignored = (*IGNORED_WHEN_EMPTY, *unfinished_formatting(disk, path))
    found = [name for name in disk.list_dir(path) if name not in ignored]
    if found:
        raise DataDirectoryError(
            f"{path} holds {found[0]} but no meta.properties, so whose data it is cannot be told; "
            "restore that file, let `quire storage format` write it anew, or start with an empty directory."
        )


def _formatted(disk: Disk, path: str) -> MetaProperties:
    meta = read_meta(disk, path)
    assert meta is not None, f"{path} was formatted and has no meta.properties"
    return meta
