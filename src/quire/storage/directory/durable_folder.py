"""Creating the folder of a data directory so that it survives a power loss. `LogDirectory` calls it."""

from contextlib import suppress

from quire.seams import Disk
from quire.storage.directory.meta_properties import FILE_NAME as META_FILE


def make_durable_folder(disk: Disk, path: str) -> None:
    """Creates the folder and those above it, and syncs their names."""
    missing = []
    is_formatted = disk.exists(f"{path}/{META_FILE}")
    while path and not disk.is_dir(path):
        missing.append(path)
        path = path.rpartition("/")[0]
    if path and not is_formatted:
        # An earlier start may have been killed after creating this folder and before syncing its name. If the folder
        # above cannot be read, Quire has not created this one.
        with suppress(PermissionError):
            disk.sync_dir(_folder_above(path))
    for folder in reversed(missing):
        disk.make_dirs(folder)
        disk.sync_dir(_folder_above(folder))


def _folder_above(path: str) -> str:
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")
