"""Files that an interrupted deletion or compaction left in a partition's folder.

`.deleted` and `.tmp` files count for nothing, but for the marks of rolls. A compaction writes its result under
`.cleaned`, and when all of it is synced renames it to `.swap`: from then on the result is valid and what it replaces
may already be gone, so it is put in place. Every step can be repeated, so a crash in between does no harm.
"""

import logging

from quire.seams import Disk
from quire.storage import batch_scan, file_names
from quire.storage.roll_mark import is_mark

_SUFFIXES = (file_names.DELETED, file_names.CLEANED, file_names.SWAP, file_names.TEMPORARY)
_RAFT_SNAPSHOT_DELETED = ".checkpoint.deleted"

_log = logging.getLogger("quire.storage")


def tidy(disk: Disk, folder: str) -> list[str]:
    """Finishes or removes left-overs; returns the names that are in the folder afterwards."""
    names = disk.list_dir(folder)
    if not any(name.endswith(_SUFFIXES) for name in names):
        return names
    cleaned = [name for name in names if name.endswith(file_names.CLEANED)]
    swaps = [name for name in names if name.endswith(file_names.SWAP)]
    # A swap file beside a cleaned one of the same or a lower offset belongs to a result that is not complete.
    incomplete_from = min((name[:20] for name in cleaned), default="~")
    incomplete = [name for name in swaps if name[:20] >= incomplete_from]
    for name in names:
        if _is_temporary(name) or _is_deleted(name) or name in cleaned or name in incomplete:
            _log.info("removing %s/%s, left over from an earlier stop", folder, name)
            disk.remove(f"{folder}/{name}")
    _finish_swaps(disk, folder, [name for name in swaps if name not in incomplete])
    return disk.list_dir(folder)


def _finish_swaps(disk: Disk, folder: str, swaps: list[str]) -> None:
    replaced: list[tuple[int, int]] = []
    for name in swaps:
        parsed = file_names.parse_offset_file(name.removesuffix(file_names.SWAP))
        if parsed is not None and parsed[1] == file_names.LOG:
            replaced.append((parsed[0], _end_offset(disk, f"{folder}/{name}", parsed[0])))
    for name in disk.list_dir(folder):
        parsed = file_names.parse_offset_file(name)
        if parsed is None or parsed[1] == file_names.SNAPSHOT:
            continue
        if any(start <= parsed[0] < end for start, end in replaced):
            disk.remove(f"{folder}/{name}")
    for name in swaps:
        _log.info("finishing the compaction that left %s/%s", folder, name)
        disk.rename(f"{folder}/{name}", f"{folder}/{name.removesuffix(file_names.SWAP)}")


def _end_offset(disk: Disk, path: str, base_offset: int) -> int:
    file = disk.open(path)
    try:
        end_offset = base_offset + 1
        for _, header in batch_scan.headers(file, 0, file.size()):
            end_offset = header.next_offset
        return end_offset
    finally:
        file.close()


def _is_temporary(name: str) -> bool:
    # What a roll has marked has to be put in order first.
    return name.endswith(file_names.TEMPORARY) and not is_mark(name)


def _is_deleted(name: str) -> bool:
    # A metadata log's own snapshots are in the same folder; the log does not decide about them.
    return name.endswith(file_names.DELETED) and not name.endswith(_RAFT_SNAPSHOT_DELETED)
