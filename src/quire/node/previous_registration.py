"""Whether a broker still has everything that it had under its last registration (KIP-966).

If so, it reports the epoch of that registration, and its replicas stay eligible to lead. Otherwise it reports -1, and
leaves every ISR and every set of eligible replicas. It has everything after a clean stop, and also after a kill as long
as the page cache is the same (`quire.storage.directory.registration_mark`); Apache Kafka counts only the former.

One directory decides for all: with one that failed, is empty, or was used under another registration, the broker may
have lost any of its replicas. So may one that finds synced records gone when it opens a log, even after a clean stop.
"""

import logging
from collections.abc import Iterable

from quire.metadata.image import ClusterImage
from quire.node.broker_lifecycle import NO_EPOCH
from quire.storage.directory.log_directory import LogDirectory

_log = logging.getLogger("quire.broker")


def previous_epoch(directories: list[LogDirectory], image: ClusterImage, node_id: int) -> int:
    """-1 if something may be lost. `image` is from before the logs were opened."""
    epochs = {_epoch_of(directory) for directory in directories}
    epoch = epochs.pop()
    if epochs or epoch is None or _lacks_a_log(directories, image, node_id):
        return NO_EPOCH
    return epoch


def remember(directories: Iterable[LogDirectory], broker_epoch: int) -> None:
    """Before the broker is unfenced: what it writes from now on belongs to this registration."""
    for directory in directories:
        if directory.failure is None:
            try:
                directory.registration.write(broker_epoch)
            except OSError as error:
                _log.warning(
                    "%s: if this process is killed, its replicas may not lead afterwards: %s", directory, error
                )
                directory.fail(error)


def forget(directories: Iterable[LogDirectory]) -> None:
    """A disk has failed: what the page cache had for it may be gone, although the page cache is the same.

    In every directory, because the mark in the failed one may not be removable.
    """
    for directory in directories:
        directory.registration.remove()


def epoch_of_clean_stop(directories: Iterable[LogDirectory], broker_epoch: int) -> int:
    """What the marks of a clean stop say: after a failure no epoch, for the same reason as in `forget`."""
    return NO_EPOCH if any(directory.failure is not None for directory in directories) else broker_epoch


def _epoch_of(directory: LogDirectory) -> int | None:
    if directory.failure is not None or directory.registration.is_void:
        return None
    # A directory without logs keeps the mark of a clean stop while other processes register.
    registered = None if directory.unopened else directory.registration.read()
    known = [epoch for epoch in (directory.clean_broker_epoch, registered) if epoch is not None]
    return max(known, default=None)


def _lacks_a_log(directories: list[LogDirectory], image: ClusterImage, node_id: int) -> bool:
    """Whether the folder of a partition is gone, of which this broker should have every record."""
    logs = [directory.logs for directory in directories]
    return any(
        node_id in partition.isr + partition.elr and not any((topic.name, index) in each for each in logs)
        for topic in image.topics_by_name.values()
        for index, partition in topic.partitions.items()
    )
