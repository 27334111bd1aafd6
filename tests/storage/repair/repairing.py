"""Repairs a log in a test: the batches of another replica, and a complete repair."""

from collections.abc import Callable

from quire.protocol.records.batch import walk_batches
from quire.seams import Disk
from quire.storage.log import Log
from quire.storage.repair.segment_copy import Complete, Copied, Fetched, SegmentCopy
from quire.storage.repair.targets import find_targets, may_have_gaps
from quire.storage.segment import Segment

Source = Callable[[int], bytes]
"""The batches that another replica sends for an offset, from the one that contains it on."""


def sends(*batches: bytes, portion: int = 2) -> Source:
    """At most `portion` of these batches, and a part of the next one."""

    def fetch(offset: int) -> bytes:
        left = [each for each in batches if walk_batches(each)[0].last_offset >= offset]
        return b"".join(left[:portion]) + b"".join(left[portion:])[:70]

    return fetch


def repair(
    disk: Disk, log: Log, damaged: Segment, source: Source, *, cleaned_offset: int | None = None
) -> list[Complete]:
    """Runs a complete repair, like `quire.node.replicas.segment_repairs`."""
    done = []
    for target in find_targets(log, damaged, cleaned_offset):
        copy = SegmentCopy(disk, log, target, may_have_gaps=may_have_gaps(log, cleaned_offset))
        try:
            progress = copy.work()
            while not isinstance(progress, Complete):
                if isinstance(progress, Copied):
                    progress = copy.work()
                else:
                    progress = copy.work(Fetched(2, memoryview(source(progress.offset)), log.end_offset))
        except BaseException:
            copy.drop()
            raise
        assert log.replace_damaged(target.segment, progress.size, lacks_aborted=progress.lacks_aborted)
        disk.sync_dir(log.path)
        done.append(progress)
    return done
