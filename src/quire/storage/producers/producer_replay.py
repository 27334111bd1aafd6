"""Rebuilds producer state from the newest usable snapshot and the log after it.

Only headers and transaction markers of the log are read. A missing or corrupt transaction index is rebuilt in the same
way.
"""

import logging

from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.producers.end_marker import is_end_marker
from quire.storage.producers.producer_snapshot import ProducerSnapshots
from quire.storage.producers.producer_state import ProducerState
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.segment import Segment
from quire.storage.segments import Segments

_log = logging.getLogger("quire.storage")


def replay_producers(
    segments: Segments, snapshots: ProducerSnapshots, start_offset: int, end_offset: int
) -> ProducerState:
    """The producers before `end_offset`, from a snapshot or else from `start_offset` on."""
    newest = snapshots.newest(end_offset)
    offset, state = newest if newest is not None else (start_offset, ProducerState())
    for segment in segments.between(offset, end_offset):
        _replay(state, segment, offset, end_offset)
    return state


def rebuild_transaction_index(
    segments: Segments, snapshots: ProducerSnapshots, segment: Segment, end_offset: int, reason: Exception
) -> None:
    """Rebuilds the transaction index of a segment that ends at `end_offset`, and writes its file."""
    _log.warning("rebuilding %s: %s", segment.transaction_index.path, reason)
    state = replay_producers(segments, snapshots, segments[0].base_offset, segment.base_offset)
    active = segment.offset_index.pinned
    segment.transaction_index.reset()
    for aborted in _replay(state, segment, segment.base_offset, end_offset):
        segment.transaction_index.append(aborted)
    segment.transaction_index.write()
    if not active:
        segment.transaction_index.unpin()


def _replay(state: ProducerState, segment: Segment, offset: int, end_offset: int) -> list[AbortedTransaction]:
    """Updates `state` with the batches from `offset` up to `end_offset`; returns transactions aborted there."""
    aborted = []
    try:
        for position, header in segment.batches_around(offset):
            if header.base_offset >= end_offset:
                break
            if header.last_offset < offset or header.producer_id < 0:
                continue
            if not is_end_marker(header):
                state.update(header)
            elif (marker := segment.marker_at(position, header)) is not None:
                ended = state.end_transaction(header, marker)
                if ended is not None:
                    aborted.append(ended)
    except DamagedBatchError as error:
        _log.error("the state of producers after a damaged batch is lost: %s", error)
    return aborted
