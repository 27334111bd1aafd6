"""Which page cache a folder's files are in.

The boot id is that of the running kernel, and the same in all containers of a machine. The file system is identified by
its own id, which differs between volumes that are mounted one after the other under the same device number.
"""

import os
from functools import cache

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def page_cache_id(path: str) -> str | None:
    """None where the kernel does not say when it was started."""
    boot_id = _boot_id()
    if boot_id is None:
        return None
    folder, system = os.stat(path), os.statvfs(path)
    return f"{boot_id}/{folder.st_dev:x}/{system.f_fsid:x}/{folder.st_ino:x}"


@cache
def _boot_id() -> str | None:
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip() or None
    except OSError:
        return None
