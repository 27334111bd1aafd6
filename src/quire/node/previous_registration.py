"""Whether a broker still has everything that it had under its last registration (KIP-966).

If so, it reports the epoch of that registration, and its replicas stay eligible to lead. Otherwise it reports -1, and
leaves every ISR and every set of eligible replicas. It has everything after a clean stop, and also after a kill as long
as the page cache is the same (`quire.storage.directory.registration_mark`); Apache Kafka counts only the former.

One directory decides for all: with one that failed, is empty, or was used under another registration, the broker may
have lost any of its replicas. So may one that finds synced records gone when it opens a log, even after a clean stop.
The folder of a partition may be missing in directories that are all as they were: the process was killed before it
created the folder, or a person removed it. Then only that replica is lost.
"""

import logging
from collections.abc import Iterable

from quire.metadata.features import has_directories
from quire.metadata.image import ClusterImage
from quire.node.broker_lifecycle import NO_EPOCH
from quire.node.partitions.hosted import PartitionId
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.directory.registration_mark import Registration

_log = logging.getLogger("quire.broker")


def previous_epoch(directories: Iterable[LogDirectory], image: ClusterImage, node_id: int) -> int:
    """-1 if something may be lost. `image` has the registration of a process that was killed before it knew it."""
    epochs = {_epoch_of(directory, image, node_id) for directory in directories}
    epoch = epochs.pop()
    return NO_EPOCH if epochs or epoch is None else epoch


def register_from(directories: Iterable[LogDirectory], epoch: int, incarnation_id: bytes) -> None:
    """Before this incarnation asks for a registration: it has everything of that with this epoch."""
    _write(directories, Registration(epoch, registering=incarnation_id))


def remember(directories: Iterable[LogDirectory], broker_epoch: int) -> None:
    """Before the broker is unfenced: what it writes from now on belongs to this registration."""
    _write(directories, Registration(broker_epoch))


def forget(directories: Iterable[LogDirectory]) -> None:
    """A disk has failed: what the page cache had for it may be gone, although the page cache is the same.

    In every directory, because the mark in the failed one may not be removable.
    """
    for directory in directories:
        directory.registration.remove()


def epoch_of_clean_stop(directories: Iterable[LogDirectory], broker_epoch: int) -> int:
    """What the marks of a clean stop say: after a failure no epoch, for the same reason as in `forget`."""
    return NO_EPOCH if any(directory.failure is not None for directory in directories) else broker_epoch


def lost_replicas(directories: Iterable[LogDirectory], image: ClusterImage, node_id: int) -> list[PartitionId]:
    """Replicas that should have every record, and have no folder.

    `image` is from before the logs were opened.
    """
    if not has_directories(image.metadata_version):
        return []
    logs = [directory.logs | directory.unopened for directory in directories]
    return [
        (topic.topic_id, index)
        for topic in image.topics_by_name.values()
        for index, partition in topic.partitions.items()
        if node_id in partition.isr + partition.elr and not any((topic.name, index) in each for each in logs)
    ]


def _write(directories: Iterable[LogDirectory], registration: Registration) -> None:
    for directory in directories:
        if directory.failure is None:
            try:
                directory.registration.write(registration)
            except OSError as error:
                _log.warning(
                    "%s: if this process is killed, its replicas may not lead afterwards: %s", directory, error
                )
                directory.fail(error)


def _epoch_of(directory: LogDirectory, image: ClusterImage, node_id: int) -> int | None:
    if directory.failure is not None or directory.registration.is_void:
        return None
    clean_epoch = directory.clean_broker_epoch
    found = None if directory.unopened else directory.registration.read()
    if found is None:
        return clean_epoch
    registered = image.brokers.get(node_id)
    epoch = found.broker_epoch
    if registered is not None and registered.incarnation_id == found.registering:
        epoch = registered.epoch
    # A directory without logs keeps the mark of an earlier clean stop.
    return epoch if clean_epoch is None else max(epoch, clean_epoch)
