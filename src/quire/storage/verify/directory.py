"""Verifies a data directory: `meta.properties`, the checkpoints, then one partition after the other."""

from collections.abc import Callable, Iterator

from quire.seams import Disk
from quire.storage import file_names
from quire.storage.directory import checkpoints, clean_shutdown, meta_properties
from quire.storage.directory.checkpoints import CheckpointError
from quire.storage.directory.log_directory import LOCK_FILE
from quire.storage.errors import DataDirectoryError
from quire.storage.verify.finding import Finding
from quire.storage.verify.log import LogVerifier

_CHECKPOINTS = (
    checkpoints.RECOVERY_POINTS,
    checkpoints.LOG_START_OFFSETS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.CLEANED_OFFSETS,
)


def log_bytes(disk: Disk, path: str) -> int:
    """The size of all logs."""
    return sum(
        disk.file_size(f"{folder}/{name}")
        for folder in _partitions(disk, path)
        for name in disk.list_dir(folder)
        if name.endswith(file_names.LOG)
    )


def verify_directory(disk: Disk, path: str, progress: Callable[[int], None]) -> Iterator[Finding]:
    """Everything that is wrong. `progress` is called with the number of bytes of logs read since its last call.

    DataDirectoryError if `path` is not a directory, or a process uses it.
    """
    if not disk.is_dir(path):
        raise DataDirectoryError(f"{path} is not a directory; name a data directory as a whole.")
    # Without the file no process can have locked the directory, and this must not create it.
    lock = disk.lock(f"{path}/{LOCK_FILE}") if disk.exists(f"{path}/{LOCK_FILE}") else None
    if lock is None and disk.exists(f"{path}/{LOCK_FILE}"):
        raise DataDirectoryError(f"{path} is in use by another process; stop that one first.")
    try:
        yield from _verify_meta(disk, path)
        for name in _CHECKPOINTS:
            yield from _verify_checkpoint(disk, f"{path}/{name}")
        points = _recovery_points(disk, path)
        for folder in _partitions(disk, path):
            recovery_point = None if points is None else points.get(folder, 0)
            yield from LogVerifier(disk, folder, progress, recovery_point).findings()
    finally:
        if lock is not None:
            lock.close()


def _partitions(disk: Disk, path: str) -> list[str]:
    names = [name for name in disk.list_dir(path) if file_names.parse_partition_folder(name) is not None]
    return [f"{path}/{name}" for name in names if disk.is_dir(f"{path}/{name}")]


def _recovery_points(disk: Disk, path: str) -> dict[str, int] | None:
    """Recovery points by folder; None after a clean stop. A log without one, as the metadata log, is scanned whole."""
    if clean_shutdown.read_mark(disk, path) is not None:
        return None
    points = checkpoints.read_if_sensible(disk, f"{path}/{checkpoints.RECOVERY_POINTS}")
    return {f"{path}/{file_names.partition_folder(*key)}": offset for key, offset in points.items()}


def _verify_meta(disk: Disk, path: str) -> Iterator[Finding]:
    file = f"{path}/{meta_properties.FILE_NAME}"
    try:
        if meta_properties.read_meta(disk, path) is None:
            yield Finding(file, None, "it is missing, so the owner of the directory is unknown")
    except DataDirectoryError as error:
        yield Finding.of_error(file, error)


def _verify_checkpoint(disk: Disk, file: str) -> Iterator[Finding]:
    try:
        checkpoints.read_offsets(disk, file)
    except CheckpointError as error:
        yield Finding.of_error(file, error)
