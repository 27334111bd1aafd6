"""Files that an interrupted deletion or compaction left in a partition's folder.

`.deleted` and `.tmp` files are removed, except for roll marks. A compaction writes its result to `.cleaned` files and,
when these are synced, renames them to `.swap`. From then on the result is valid and the originals may already be
removed, so the swap is completed. Every step can be repeated, so a crash in between does no harm.
"""

import logging

from quire.seams import Disk
from quire.storage import file_names
from quire.storage.recovery.roll_mark import is_mark
from quire.storage.scanning import batch_scan

_SUFFIXES = (file_names.DELETED, file_names.CLEANED, file_names.SWAP, file_names.TEMPORARY)
_RAFT_SNAPSHOT_DELETED = ".checkpoint.deleted"

_log = logging.getLogger("quire.storage")


def tidy(disk: Disk, folder: str) -> list[str]:
    """Completes swaps and removes other left-overs; returns the names that are in the folder afterwards."""
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
        _log.info("completing the compaction that left %s/%s", folder, name)
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
    # A roll mark is needed until the indexes are rebuilt.
    return name.endswith(file_names.TEMPORARY) and not is_mark(name)


def _is_deleted(name: str) -> bool:
    # Snapshots of the metadata log are in the same folder, but are not part of the log.
    return name.endswith(file_names.DELETED) and not name.endswith(_RAFT_SNAPSHOT_DELETED)
