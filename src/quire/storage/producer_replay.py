"""Producer state from what is on disk: the newest usable snapshot, and the headers of the log behind it."""

import logging

from quire.storage.batch_scan import DamagedBatchError
from quire.storage.producer_snapshot import ProducerSnapshots
from quire.storage.producer_state import ProducerState
from quire.storage.segments import Segments

_log = logging.getLogger("quire.storage")


def replay_producers(
    segments: Segments, snapshots: ProducerSnapshots, start_offset: int, end_offset: int
) -> ProducerState:
    """The producers as they were before `end_offset`, from a snapshot or else from `start_offset` on."""
    newest = snapshots.newest(end_offset)
    offset, state = newest if newest is not None else (start_offset, ProducerState())
    try:
        for segment in segments.between(offset, end_offset):
            for _, header in segment.batches_around(offset):
                if header.base_offset >= end_offset:
                    break
                if header.last_offset >= offset and header.producer_id >= 0:
                    state.update(header)
    except DamagedBatchError as error:
        _log.error("producers after a damaged batch are forgotten: %s", error)
    return state
