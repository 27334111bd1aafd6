"""The part of a Fetch response for one partition: whole batches, which are decoded when the caller reads them."""

from collections.abc import Iterator
from typing import NamedTuple

from quire.client.offsets import TopicPartition
from quire.protocol.records import BatchHeader, ControlRecordType, Record, control_type, decode_batch, walk_batches
from quire.seams import Buffer


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class Fetched(NamedTuple):
    topic_partition: TopicPartition
    from_offset: int
    next_offset: int
    high_watermark: int
    batches: Buffer
    aborted: list[AbortedTransaction]

    def records(self) -> Iterator[Record]:
        """The records from the requested offset on, without markers and records of aborted transactions.

        A response begins with the whole batch that contains the offset, and may end in the middle of a batch.
        """
        for batch in self.visible_batches():
            for record in decode_batch(self.batches, batch):
                if record.offset >= self.from_offset:
                    yield record

    def visible_batches(self) -> Iterator[BatchHeader]:
        """The batches whose records are for applications; the first may begin before the requested offset."""
        open_aborts: dict[int, bool] = {}
        to_come = sorted(self.aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        for batch in walk_batches(self.batches):
            while to_come and to_come[-1].first_offset <= batch.last_offset:
                open_aborts[to_come.pop().producer_id] = True
            if batch.is_control:
                marker = decode_batch(self.batches, batch)
                if marker and control_type(marker[0]) == ControlRecordType.ABORT:
                    open_aborts.pop(batch.producer_id, None)
            elif not (batch.is_transactional and batch.producer_id in open_aborts):
                yield batch
