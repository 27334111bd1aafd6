"""`.kafka_cleanshutdown`: a clean stop writes it last, and a start removes it first.

If it exists, every log in the directory was closed and synced, and no scan is needed. It contains the broker epoch of
the process that wrote it, by which the controller knows that no other process used the directory in between.
"""

import json

from quire.seams import Disk
from quire.seams.disk import write_atomically

FILE_NAME = ".kafka_cleanshutdown"

VERSION = 0
NO_BROKER_EPOCH = -1


def write_mark(disk: Disk, folder: str, broker_epoch: int) -> None:
    content = json.dumps({"version": VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    write_atomically(disk, f"{folder}/{FILE_NAME}", content.encode())


def read_mark(disk: Disk, folder: str) -> int | None:
    """The broker epoch of the process that stopped cleanly, -1 if unknown; None if it did not stop cleanly."""
    try:
        content = json.loads(disk.read_file(f"{folder}/{FILE_NAME}"))
        return int(content["brokerEpoch"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return NO_BROKER_EPOCH


def remove_mark(disk: Disk, folder: str) -> None:
    """Removes the mark durably: if a power loss restored it, changed logs would count as closed."""
    path = f"{folder}/{FILE_NAME}"
    if disk.exists(path):
        disk.remove(path)
        disk.sync_dir(folder)
