"""Which data directory has the log of a partition, or gets it; and logs that belong to no partition of this node.

If the topic is not in the metadata, the log is kept under another name until the operator removes it: the metadata may
be what was lost. If the partition was reassigned to other brokers while this node was down, the log is deleted. Without
a replica the leader epoch is higher than any that this log has seen, so a log with that epoch or a later one shows that
the metadata is older than the log, and is kept too.
"""

import logging
from collections.abc import Iterable

from quire.metadata.image import ClusterImage, TopicImage
from quire.node.partitions.hosted import HostedPartitions
from quire.node.partitions.log_deletions import LogDeletions
from quire.protocol.errors import ApiError
from quire.storage.directory.log_directory import LogDirectory

log = logging.getLogger("quire.partitions")


def directory_for(
    directories: list[LogDirectory], key: tuple[str, int], topic_id: bytes, wish: LogDirectory | None = None
) -> LogDirectory | None:
    """The directory that has the partition's log, even if it has failed; for a new log the wished one, if it works,
    or the emptiest that does.

    A log of the same name with another topic id belongs to a deleted topic, and is set aside.
    """
    for directory in directories:
        if key in directory.logs:
            if directory.topic_ids[key] in (None, topic_id):
                return directory
            if directory.failure is None:
                _set_aside(directory, *key)
        elif key in directory.unopened:
            return directory
    working = [directory for directory in directories if directory.failure is None]
    if wish in working:
        return wish
    return min(working, key=lambda directory: len(directory.logs) + len(directory.futures), default=None)


def delete_logs_of(directories: list[LogDirectory], topics: Iterable[TopicImage], deletions: LogDeletions) -> None:
    for topic in topics:
        for directory in directories:
            for key in [(topic.name, index) for index in topic.partitions if (topic.name, index) in directory.logs]:
                if directory.topic_ids[key] == topic.topic_id and directory.failure is None:
                    deletions.add(key, directory, directory.logs[key])
    deletions.finish()


def clear_strays(hosted: HostedPartitions, node_id: int, deletions: LogDeletions) -> None:
    """Deletes the logs of replicas that this node no longer has, and sets aside those that belong to no partition.

    The image must be complete: it says what was decided while this node was down.
    """
    for directory in hosted.directories:
        for topic, index in list(directory.logs):
            partition = hosted.by_name.get((topic, index))
            in_use = partition is not None and hosted.directory_of.get(partition) is directory
            if in_use or directory.failure is not None or (topic, index) in hosted.undecided:
                continue
            if _was_reassigned(hosted.image, directory, topic, index, node_id):
                log.info("the replica of %s-%d was moved away while this node was down: deleting it", topic, index)
                deletions.add((topic, index), directory, directory.logs[topic, index])
            else:
                _set_aside(directory, topic, index)


def _was_reassigned(image: ClusterImage, directory: LogDirectory, topic: str, index: int, node_id: int) -> bool:
    topic_id = directory.topic_ids[topic, index]
    known = None if topic_id is None else image.partition(topic_id, index)
    if known is None or node_id in known.replicas:
        return False
    return directory.logs[topic, index].epochs.latest < known.leader_epoch


def _set_aside(directory: LogDirectory, topic: str, index: int) -> None:
    try:
        folder = directory.set_aside(topic, index)
    except ApiError as error:
        log.error("%s-%d is of a topic that is gone, and could not be set aside: %s", topic, index, error.message)
        return
    log.warning("%s-%d is of a topic that is gone; its data is kept in %s until you remove it", topic, index, folder)
