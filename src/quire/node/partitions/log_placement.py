"""Which data directory has the log of a partition, or gets it; and logs that belong to no partition.

A log without a partition is data of a topic that the metadata does not know. It is kept, under another name, until the
operator removes it.
"""

import logging
from collections.abc import Iterable

from quire.metadata.image import TopicImage
from quire.node.partitions.hosted import HostedPartitions
from quire.node.partitions.log_deletions import LogDeletions
from quire.protocol.errors import ApiError
from quire.storage.directory.log_directory import LogDirectory

log = logging.getLogger("quire.partitions")


def directory_for(directories: list[LogDirectory], key: tuple[str, int], topic_id: bytes) -> LogDirectory | None:
    """The directory that has the partition's log, even if it has failed; for a new log, the emptiest that works.

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
    return min(working, key=lambda directory: len(directory.logs), default=None)


def delete_logs_of(directories: list[LogDirectory], topics: Iterable[TopicImage], deletions: LogDeletions) -> None:
    for topic in topics:
        for directory in directories:
            for key in [(topic.name, index) for index in topic.partitions if (topic.name, index) in directory.logs]:
                if directory.topic_ids[key] == topic.topic_id and directory.failure is None:
                    deletions.add(key, directory, directory.logs[key])
    deletions.finish()


def set_strays_aside(hosted: HostedPartitions) -> None:
    """Sets the logs aside that belong to no partition, and logs a warning for each."""
    for directory in hosted.directories:
        for topic, index in list(directory.logs):
            partition = hosted.by_name.get((topic, index))
            in_use = partition is not None and hosted.directory_of.get(partition) is directory
            if not in_use and directory.failure is None:
                _set_aside(directory, topic, index)


def _set_aside(directory: LogDirectory, topic: str, index: int) -> None:
    try:
        folder = directory.set_aside(topic, index)
    except ApiError as error:
        log.error("%s-%d is of a topic that is gone, and could not be set aside: %s", topic, index, error.message)
        return
    log.warning("%s-%d is of a topic that is gone; its data is kept in %s until you remove it", topic, index, folder)
