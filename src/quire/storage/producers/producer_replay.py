"""Rebuilds producer state from the newest usable snapshot and the log after it.

Only headers and transaction markers of the log are read. A missing or corrupt transaction index is rebuilt in the same
way.
"""

import logging
from collections.abc import Iterable
from contextlib import suppress

from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.producers.end_marker import is_end_marker
from quire.storage.producers.producer_snapshot import ProducerSnapshots
from quire.storage.producers.producer_state import ProducerState
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.segment import Segment
from quire.storage.segment.lookup import SegmentLookup
from quire.storage.segments import Segments

MarkedEnd = tuple[int, int]
"""The offset of a marker, and the first offset of the transaction that it ends."""

_log = logging.getLogger("quire.storage")


def replay_producers(
    segments: Segments, snapshots: ProducerSnapshots, start_offset: int, end_offset: int
) -> ProducerState:
    """The producers before `end_offset`, from a snapshot or else from `start_offset` on."""
    newest = snapshots.newest(end_offset)
    offset, state = newest if newest is not None else (start_offset, ProducerState())
    for segment in segments.between(offset, end_offset):
        replay(state, segment, offset, end_offset)
    return state


def rebuild_transaction_index(
    segments: Segments, snapshots: ProducerSnapshots, segment: Segment, end_offset: int, reason: Exception
) -> None:
    """Rebuilds the transaction index of a segment that ends at `end_offset`, and writes its file."""
    state = replay_producers(segments, snapshots, segments[0].base_offset, segment.base_offset)
    take_transaction_index(segment, replay(state, segment, segment.base_offset, end_offset), reason)


def take_transaction_index(segment: Segment, aborted: Iterable[AbortedTransaction], reason: Exception) -> None:
    """Replaces the transaction index of a segment, and writes its file."""
    _log.warning("rebuilt %s: %s", segment.transaction_index.path, reason)
    active = segment.offset_index.pinned
    segment.transaction_index.reset()
    for each in aborted:
        segment.transaction_index.append(each)
    segment.transaction_index.write()
    if not active:
        segment.transaction_index.unpin()


def find_ended(segments: Segments, snapshots: ProducerSnapshots, start_offset: int, end_offset: int) -> list[MarkedEnd]:
    """The transactions whose markers are from `start_offset` up to `end_offset`.

    Most logs have no marker there, which the headers show; only for the others the state before is rebuilt, too.
    """
    ended: list[MarkedEnd] = []
    searched = segments.between(start_offset, end_offset)
    if any(_has_marker(segment, start_offset, end_offset) for segment in searched):
        state = replay_producers(segments, snapshots, segments[0].base_offset, start_offset)
        for segment in searched:
            replay(state, segment, start_offset, end_offset, ended)
    return ended


def _has_marker(segment: Segment, offset: int, end_offset: int) -> bool:
    with suppress(DamagedBatchError):  # `replay` reports it.
        for _, header in segment.batches_around(offset):
            if header.base_offset >= end_offset:
                break
            if header.last_offset >= offset and is_end_marker(header):
                return True
    return False


def replay(
    state: ProducerState, segment: SegmentLookup, offset: int, end_offset: int, ended: list[MarkedEnd] | None = None
) -> list[AbortedTransaction]:
    """Updates `state` with the batches from `offset` up to `end_offset`; returns transactions aborted there.

    All transactions that end there are added to `ended`.
    """
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
                first_offset = state.open_since(header.producer_id)
                if ended is not None and first_offset is not None:
                    ended.append((header.last_offset, first_offset))
                entry = state.end_transaction(header, marker)
                if entry is not None:
                    aborted.append(entry)
    except DamagedBatchError as error:
        _log.error("the state of producers after a damaged batch is lost: %s", error)
    return aborted
