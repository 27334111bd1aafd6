"""Which segments a repair replaces by copies.

In a log that was never compacted all replicas are equal byte for byte, so only the damaged segment is replaced, and all
of it that is intact is kept.

A compacted log cannot be patched. Replicas compact at different times, so one may have removed a tombstone that the
other needs to hide an old value. So everything is copied up to the end of the damage, or up to where this replica has
compacted, if that is further: then this part of the log is as another replica has it, and nothing was ever removed from
the rest. The damaged segment comes last. If a crash interrupts the repair, the damage is found again, and all of it is
repeated.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from quire.storage.log import Log
from quire.storage.segment import Segment


class Target(NamedTuple):
    """A segment to be replaced, which is not the active one, and the base offset of the next."""

    segment: Segment
    end_offset: int


def find_targets(log: Log, damaged: Segment, cleaned_offset: int | None) -> Sequence[Target]:
    """The segments to replace, the damaged one last. `cleaned_offset` is None if the log was never compacted."""
    completed = [Target(segment, following.base_offset) for segment, following in pairwise(log.segments)]
    last = next(target for target in completed if target.segment is damaged)
    if not may_have_gaps(log, cleaned_offset):
        return [last]
    end_offset = max(last.end_offset, cleaned_offset or 0)
    others = [each for each in completed if each.segment.base_offset < end_offset and each is not last]
    return [*others, last]


def may_have_gaps(log: Log, cleaned_offset: int | None) -> bool:
    """Whether the log is or was compacted, so that offsets may be missing in it."""
    return log.config.compact or cleaned_offset is not None
