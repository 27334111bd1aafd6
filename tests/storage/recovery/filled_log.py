"""A log with several segments for the tests of this folder."""

from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from simulator.disk import DiskCall, SimDisk
from tests.storage.batches import (
    FOLDER,
    SMALL_SEGMENTS,
    append,
    batch,
    letters,
    open_log,
    read_all,
)


def name(offset: int, suffix: str = ".log") -> str:
    return f"{FOLDER}/{offset:020d}{suffix}"


def written(disk: SimDisk, count: int = 8, config: LogConfig = SMALL_SEGMENTS) -> Log:
    """A log of several segments with two batches each, by one producer, an epoch every three offsets."""
    log = open_log(disk, config)
    for sequence, value in enumerate(letters(count)):
        data = batch(value, producer_id=5, producer_epoch=0, sequence=sequence)
        append(log, data, leader_epoch=sequence // 3)
    return log


def state_of(log: Log) -> tuple[object, ...]:
    """Everything that opening has to restore."""
    producers = [(p.producer_id, p.epoch, p.last_sequence, p.last_offset) for p in log.producers()]
    return (log.start_offset, log.end_offset, log.epochs.entries, producers, read_all(log), len(log.segments))


def watch_reads(disk: SimDisk) -> list[DiskCall]:
    """The bytes that are read from now on."""
    seen: list[DiskCall] = []

    def note(operation: DiskCall) -> bool:
        if operation.kind == "read":
            seen.append(operation)
        return False

    disk.fail_when(note)
    return seen


def damage(disk: SimDisk, path: str, position: int) -> None:
    file = disk.open(path)
    file.pwritev([b"?"], position)
    file.sync()
    file.close()
