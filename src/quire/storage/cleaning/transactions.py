"""Transactions during compaction: which records are removed as aborted, and when a marker may be removed.

Records of aborted transactions are removed. The marker that ended a transaction is retained while the log contains a
batch of that transaction, because readers need it. After that it is treated as a tombstone: it gets a delete horizon,
and is removed when that has passed.
"""

from collections.abc import Iterable

from quire.protocol.records.batch import BatchHeader
from quire.protocol.records.control import ControlRecordType, control_type
from quire.protocol.records.reader import decode_batch
from quire.seams import Buffer
from quire.storage.indexes.transaction_index import AbortedTransaction


class CleanedTransactions:
    """The state of transactions at one point of a walk through the batches of a log, from its start or later."""

    __slots__ = ("_coming", "_committed", "_ongoing", "_seen", "still_aborted")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._ongoing: dict[int, AbortedTransaction] = {}
        self._seen: dict[int, None] = {}
        """Producers whose ongoing aborted transaction still has batches in the log."""
        self._committed: dict[int, None] = {}
        """Producers whose ongoing transaction, which was not aborted, still has batches in the log."""
        self.still_aborted: list[AbortedTransaction] = []
        """Aborted transactions whose marker is retained: the transaction index of the cleaned segment.

        The caller empties it for each segment.
        """

    def on_batch(self, header: BatchHeader) -> bool:
        """Whether the records of this batch were aborted."""
        self._begin_up_to(header)
        if not header.is_transactional:
            return False
        if header.producer_id in self._ongoing:
            self._seen[header.producer_id] = None
            return True
        self._committed[header.producer_id] = None
        return False

    def on_control_batch(self, header: BatchHeader, data: Buffer) -> bool:
        """Whether this marker is no longer needed, because no batch of its transaction is left."""
        self._begin_up_to(header)
        if header.record_count == 0:
            return True
        kind = control_type(decode_batch(data, header)[0])
        if kind is ControlRecordType.ABORT:
            ended = self._ongoing.pop(header.producer_id, None)
            if ended is not None and header.producer_id in self._seen:
                del self._seen[header.producer_id]
                self.still_aborted.append(ended)
                return False
            return True
        if kind is ControlRecordType.COMMIT:
            if header.producer_id in self._committed:
                del self._committed[header.producer_id]
                return False
            return True
        return False

    def _begin_up_to(self, header: BatchHeader) -> None:
        while self._coming and self._coming[-1].first_offset <= header.last_offset:
            begun = self._coming.pop()
            # If the walk began after the marker of a transaction, it will not see it.
            if begun.last_offset >= header.base_offset:
                self._ongoing.setdefault(begun.producer_id, begun)
