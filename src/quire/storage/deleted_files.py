"""Taking files out of use under the suffix `.deleted`, from which a job, or the next start, removes them."""

from collections.abc import Iterable

from quire.seams import Disk
from quire.storage.errors import is_full
from quire.storage.file_names import DELETED


def mark_deleted(disk: Disk, paths: Iterable[str]) -> list[str]:
    """Renames those of the files that are there, in this order, and returns their new names.

    Readers that have one open go on reading. Even a full disk does not keep a file in use: a longer name may need room
    where there is none, but to be gone needs none, and makes some.
    """
    renamed = []
    for path in filter(disk.exists, paths):
        try:
            disk.rename(path, path + DELETED)
            renamed.append(path + DELETED)
        except OSError as error:
            if not is_full(error):
                raise
            disk.remove(path)
    return renamed
