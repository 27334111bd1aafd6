"""`quire-registration`: the registration under which a broker used the directory, and the page cache that it wrote to.

A process that is killed loses nothing that it wrote: the page cache has it. The mark lets the next process prove that
it still has everything of the last registration, without a clean stop. It does if the page cache is the same one. The
cache's id (`Disk.cache_id`) is another one after a power loss or a restart of the machine, and for another disk.

The mark need not be durable: it counts only with the page cache that has it. So it is not synced, and a power loss may
leave anything. A process that is killed while it registers has lost nothing either. So before a broker registers, the
mark names the incarnation that asks, and a later process that knows which epoch this one got may use the mark. Every
mark other than that of the last registration is harmless, because the controller compares the epoch with that of the
registration it knows:

    another program used the directory      an older epoch than its registration
    the directory was emptied or exchanged  none, or that of another page cache
    the disk failed                         `remove` was called, by the process that noticed
    a log is damaged                        `remove` is called before its recovery cuts anything off
"""

import json
from contextlib import suppress
from typing import NamedTuple

from quire.seams import Disk

FILE_NAME = "quire-registration"

VERSION = 0


class Registration(NamedTuple):
    broker_epoch: int
    registering: bytes | None = None
    """The incarnation that may have registered since then, and has changed nothing under that registration."""


class RegistrationMark:
    __slots__ = ("_disk", "_folder", "_path", "is_void")

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._path = f"{folder}/{FILE_NAME}"
        self.is_void = False
        """Removed by this process: something may be lost, although the last one stopped cleanly."""

    def read(self) -> Registration | None:
        """The last registration if everything that was written under it is still there; else None."""
        try:
            content = json.loads(self._disk.read_file(self._path))
            cache_id, epoch = content["cacheId"], int(content["brokerEpoch"])
            registering = content.get("registering")
            found = Registration(epoch, None if registering is None else bytes.fromhex(registering))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        is_same = cache_id is not None and cache_id == self._disk.cache_id(self._folder)
        return found if is_same and content.get("version") == VERSION else None

    def write(self, registration: Registration) -> None:
        """OSError if the disk does not take it; the mark is then the one before, or none."""
        cache_id = self._disk.cache_id(self._folder)
        if cache_id is None:
            self._remove()
            return
        said = {"version": VERSION, "brokerEpoch": registration.broker_epoch, "cacheId": cache_id}
        if registration.registering is not None:
            said["registering"] = registration.registering.hex()
        file = self._disk.open(f"{self._path}.tmp", create=True)
        try:
            file.truncate(0)
            file.pwritev([json.dumps(said, separators=(",", ":")).encode()], 0)
            self._disk.rename(file.path, self._path)
        finally:
            file.close()

    def remove(self) -> None:
        """As far as the disk allows: something that was written may be lost."""
        self.is_void = True
        self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            if self._disk.exists(self._path):
                self._disk.remove(self._path)
