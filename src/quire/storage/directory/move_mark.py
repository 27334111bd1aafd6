"""`quire-move` in the folder of a partition: another directory of this broker may have a log of the same replica.

A move replaces a log by its copy in another directory. Both folders have this file around the moment of the
replacement, so that a start which finds two logs, or one beside a directory that has failed, knows what they are:

    ORIGINAL    the other log is the copy of this one
    COPY        this is the copy; which log took the last writes is not known: the longer one has everything
    DECIDES     this is the copy, and it has everything: the other log is not needed any more

`quire.node.moves.leftovers` decides at a start.
"""

import json
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from quire.seams import Disk
from quire.seams.disk import write_atomically

FILE_NAME = "quire-move"

VERSION = 0


class MoveRole(StrEnum):
    ORIGINAL = "original"
    COPY = "copy"
    DECIDES = "decides"


class MoveMark(NamedTuple):
    role: MoveRole
    other: bytes
    """The id of the directory of the other log."""


def read_mark(disk: Disk, folder: str) -> MoveMark | None:
    """None if the file is missing or not valid: it is written atomically, so no move has written it."""
    try:
        said = json.loads(disk.read_file(f"{folder}/{FILE_NAME}"))
        return MoveMark(MoveRole(said["role"]), bytes.fromhex(said["other"])) if said["version"] == VERSION else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def write_mark(disk: Disk, folder: str, mark: MoveMark) -> None:
    """Blocks until it is on disk."""
    said = {"version": VERSION, "role": mark.role.value, "other": mark.other.hex()}
    write_atomically(disk, f"{folder}/{FILE_NAME}", json.dumps(said, separators=(",", ":")).encode())


def remove_mark(disk: Disk, folder: str) -> None:
    """If a crash restores it, the other log does not exist any more, and a start ignores it."""
    with suppress(FileNotFoundError):
        disk.remove(f"{folder}/{FILE_NAME}")
