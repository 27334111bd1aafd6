"""What a fetch brought of one partition: whole batches, decoded when somebody reads them."""

from collections.abc import Iterator
from typing import NamedTuple

from quire.client.offsets import TopicPartition
from quire.protocol.records import Record, read_records, walk_batches
from quire.seams import Buffer

_ABORT = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class Fetched(NamedTuple):
    place: TopicPartition
    from_offset: int
    next_offset: int
    high_watermark: int
    batches: Buffer
    aborted: list[AbortedTransaction]

    def records(self) -> Iterator[Record]:
        """The records from the offset that was asked for on; never markers, never those of aborted transactions.

        A fetch begins with the whole batch that holds its offset, and may end in the middle of one.
        """
        open_aborts: dict[int, bool] = {}
        to_come = sorted(self.aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        for batch in walk_batches(self.batches):
            while to_come and to_come[-1].first_offset <= batch.last_offset:
                open_aborts[to_come.pop().producer_id] = True
            if batch.is_control:
                if _marker_type(self.batches, batch.position) == _ABORT:
                    open_aborts.pop(batch.producer_id, None)
                continue
            if batch.is_transactional and batch.producer_id in open_aborts:
                continue
            for record in read_records(self.batches, batch.position):
                if record.offset >= self.from_offset:
                    yield record


def _marker_type(batches: Buffer, position: int) -> int:
    """A control record's key is its version and its type, two bytes each."""
    for record in read_records(batches, position):
        if record.key is not None and len(record.key) >= 4:
            return int.from_bytes(record.key[2:4], "big")
    return -1
