"""Writes a file as a whole. The caller syncs it; a crash before that may tear it."""

from contextlib import closing

from quire.seams import Buffer, Disk


def write_whole(disk: Disk, path: str, content: Buffer) -> None:
    """Creates the file, or overwrites it and truncates it after `content`."""
    with closing(disk.open(path, create=True)) as file:
        file.pwritev([content], 0)
        file.truncate(len(content))
