"""At a start: which of two logs of one replica is used, when a crash has interrupted the end of a move.

`move_state` says why that is right. Called when all logs are open, before the partitions are.
"""

import logging
from typing import NamedTuple

from quire.metadata.image import ClusterImage
from quire.node.partitions.hosted import PartitionId
from quire.protocol.errors import ApiError
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.directory.move_mark import MoveMark, MoveRole

log = logging.getLogger("quire.disks")


class Leftovers(NamedTuple):
    restarts: dict[TopicPartition, LogDirectory]
    """Replicas that move again, to these directories: their copies were removed."""
    undecided: dict[TopicPartition, LogDirectory]
    """Partitions that stay offline, because this directory, which cannot be used, may have a newer log."""
    maybe_outdated: list[PartitionId]
    """Replicas of which a directory that was removed from log.dirs may have had a newer log."""


def settle(directories: list[LogDirectory], image: ClusterImage) -> Leftovers:
    """Removes the logs that are not needed. Two logs without marks are left as they are."""
    found = Leftovers({}, {}, [])
    by_id = {each.meta.directory_id: each for each in directories if each.meta is not None}
    # The id of a directory that cannot be opened is unknown.
    closed = next((each for each in directories if each.meta is None), None)
    for directory in directories:
        for key, mark in list(directory.move_marks.items()):
            topic = image.topic(key[0])
            if key not in directory.logs or topic is None or directory.topic_ids[key] not in (None, topic.topic_id):
                continue
            other = by_id.get(mark.other, closed)
            if other is not None and key in other.logs:
                if other.topic_ids[key] in (None, topic.topic_id):
                    _choose(directory, other, key, found)
            elif mark.role is not MoveRole.DECIDES and (other is None or other.failure or key in other.unopened):
                if other is None:
                    found.maybe_outdated.append((topic.topic_id, key[1]))
                    directory.unmark_log(key)
                else:
                    found.undecided[key] = other
            elif other is None or other.failure is None:
                directory.unmark_log(key)
    for key, other in found.undecided.items():
        log.error("%s-%d is offline: %s, which cannot be used, may have a newer log of it", *key, other.path)
    return found


def _choose(one: LogDirectory, other: LogDirectory, key: TopicPartition, found: Leftovers) -> None:
    kept, left = (one, other) if _has_more(one, other, key) else (other, one)
    left_log, kept_log = left.logs[key], kept.logs[key]
    start_offset = min(left_log.start_offset, kept_log.end_offset)
    log.info("using the log of %s-%d in %s, not the one that a move left in %s", *key, kept.path, left.path)
    if _role(left.move_marks.get(key)) is MoveRole.COPY:
        found.restarts[key] = left
    if start_offset > kept_log.start_offset:
        # A start that clients have seen never moves back.
        try:
            kept.start_at_now(key, start_offset)
        except ApiError:
            found.undecided[key] = kept
            return
    left.leave_log(key)
    left.remove_left(key, left_log, lambda: kept.unmark_log(key))


def _has_more(one: LogDirectory, other: LogDirectory, key: TopicPartition) -> bool:
    """Whether `one` is to be used: it decides, or has a later batch at its end. Of equal ones, the copy."""
    for each, result in ((one, True), (other, False)):
        if _role(each.move_marks.get(key)) is MoveRole.DECIDES:
            return result
    end, other_end = (_end_of(each, key) for each in (one, other))
    if end != other_end:
        return end > other_end
    return _role(one.move_marks.get(key)) is MoveRole.COPY


def _end_of(directory: LogDirectory, key: TopicPartition) -> tuple[int, int]:
    held = directory.logs[key]
    return held.epochs.epoch_of(held.end_offset - 1) if held.end_offset > held.start_offset else -1, held.end_offset


def _role(mark: MoveMark | None) -> MoveRole | None:
    return None if mark is None else mark.role
