"""The input of one cleaning run: what the jobs need of the log, in a form that does not change while they work.

A cleaning run maps the keys of the dirty part to their last offsets, as many as fit into memory. Then it cleans the log
from its start up to the last offset that was mapped.
"""

from array import array
from collections.abc import Iterable
from typing import NamedTuple

from quire.protocol.records.batch import BatchHeader
from quire.seams import Disk
from quire.storage.cleaning.cleanable import Cleanable
from quire.storage.indexes.index_file import IndexCache
from quire.storage.indexes.transaction_index import AbortedTransaction, TransactionIndex
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.producers.producer_state import NO_OFFSET, ProducerEntry
from quire.storage.segment import Segment


class Limits(NamedTuple):
    """The memory that one cleaner may use."""

    table_bytes: int
    table_load_factor: float
    buffer_bytes: int
    decompressed_bytes: int


class CleaningRun:
    __slots__ = (
        "_aborted_later",
        "_last_of_producers",
        "config",
        "end_offsets",
        "first_dirty_offset",
        "first_uncleanable_offset",
        "folder",
        "limits",
        "new_horizon_ms",
        "now_ms",
        "seed",
        "segments",
        "stay_if_empty",
        "truncations",
    )

    def __init__(self, log: Log, dirty: Cleanable, limits: Limits, seed: bytes, now_ms: int) -> None:
        self.folder = log.path
        self.truncations = log.truncations
        self.config: LogConfig = log.config
        self.limits = limits
        self.seed = seed
        self.first_dirty_offset = dirty.first_dirty_offset
        self.first_uncleanable_offset = dirty.first_uncleanable_offset
        self.segments: list[Segment] = [
            segment for segment in log.segments if segment.base_offset < dirty.first_uncleanable_offset
        ]
        """The segments that may be cleaned. Jobs use only fields that never change in a completed segment."""
        self.end_offsets = [*(segment.base_offset for segment in self.segments[1:]), dirty.first_uncleanable_offset]
        self.now_ms = now_ms
        self.new_horizon_ms = now_ms + log.config.delete_retention_ms
        self._aborted_later = log.aborted_transactions(self.first_uncleanable_offset)
        self._last_of_producers = {
            producer.producer_id: (producer.last_offset, producer.epoch) for producer in log.producers()
        }
        self.stay_if_empty = array("q", sorted({*_data_offsets(log.producers()), self.first_uncleanable_offset - 1}))
        """Last offsets of batches that are retained even if all their records are removed."""

    def read_aborted(self, disk: Disk) -> list[AbortedTransaction]:
        """All aborted transactions that may have records in the segments. Runs in a job: there may be very many."""
        aborted: list[AbortedTransaction] = []
        for segment in self.segments:
            aborted += TransactionIndex(disk, segment.transaction_index.path, segment.base_offset, IndexCache())
        return aborted + self._aborted_later

    def stays_if_empty(self, header: BatchHeader) -> bool:
        """Whether the batch is the last of its producer, or has the last offset of the cleaned range.

        A producer continues from its last sequence number, and its epoch may only be in a marker.
        """
        if header.next_offset == self.first_uncleanable_offset:
            return True
        last_offset, epoch = self._last_of_producers.get(header.producer_id, (NO_OFFSET, None))
        if last_offset != NO_OFFSET:
            return header.last_offset == last_offset
        return header.is_control and header.producer_epoch == epoch


def _data_offsets(producers: Iterable[ProducerEntry]) -> list[int]:
    return [producer.last_offset for producer in producers if producer.last_offset != NO_OFFSET]
