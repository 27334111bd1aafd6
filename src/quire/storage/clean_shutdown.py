"""`.kafka_cleanshutdown`: the last thing a clean stop writes and the first thing a start removes.

While it is there, every log in the directory was closed and synced, and nothing needs to be scanned. It names the
broker epoch of the run that wrote it, with which the controller can tell that no other run came in between.
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
    """The broker epoch of the run that stopped cleanly, -1 if it did not say; None after any other end."""
    try:
        content = json.loads(disk.read_file(f"{folder}/{FILE_NAME}"))
        return int(content["brokerEpoch"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return NO_BROKER_EPOCH


def remove_mark(disk: Disk, folder: str) -> None:
    """Durably: were the mark to come back after a power cut, changed logs would count as closed."""
    path = f"{folder}/{FILE_NAME}"
    if disk.exists(path):
        disk.remove(path)
        disk.sync_dir(folder)
