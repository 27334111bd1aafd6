"""Merges the records of partitions by their timestamps, for `quire consume --order time`.

The records of one partition keep their order, so the result is sorted by time as far as each partition is. Memory is
bounded: a few pieces of a log are kept for each partition, and a partition whose records come later waits.
"""

import heapq
from collections import deque
from collections.abc import Iterator, Mapping

from quire.client.consumer import Consumer, ConsumerConfig, Start
from quire.client.fetched import Fetched
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.protocol.records import Record

BUFFER_BYTES = 32 * 1024 * 1024
"""For all partitions together; each may exceed its share by one piece."""
SMALLEST_PIECE_BYTES = 16 * 1024
LARGEST_PIECE_BYTES = 1024 * 1024


class _Queue:
    """The records of one partition that were fetched and not printed yet."""

    __slots__ = ("_end", "_pieces", "_reading_bytes", "_records", "buffered_bytes", "next_offset", "topic_partition")

    def __init__(self, topic_partition: TopicPartition, offset: int, end: int) -> None:
        self.topic_partition = topic_partition
        self.next_offset = offset  # the next one to fetch
        self.buffered_bytes = 0
        self._end = end
        self._pieces: deque[Fetched] = deque()
        self._records: Iterator[Record] = iter(())
        self._reading_bytes = 0

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be fetched."""
        return self.next_offset >= self._end

    def add(self, piece: Fetched) -> None:
        self._pieces.append(piece)
        self.buffered_bytes += len(piece.batches)
        self.next_offset = piece.next_offset

    def next_record(self) -> Record | None:
        """None if no record is left in what was fetched."""
        while True:
            for record in self._records:
                if record.offset < self._end:
                    return record
            self.buffered_bytes -= self._reading_bytes
            self._reading_bytes = 0
            if not self._pieces:
                return None
            piece = self._pieces.popleft()
            self._reading_bytes = len(piece.batches)
            self._records = piece.records()


def in_order_of_time(
    client: BlockingClient,
    starts: Mapping[TopicPartition, Start],
    ends: Mapping[TopicPartition, int],
    *,
    read_committed: bool,
    buffer_bytes: int = BUFFER_BYTES,
) -> Iterator[tuple[TopicPartition, Record]]:
    """The records from `starts` up to `ends`, the oldest first; of two with the same timestamp, by partition."""
    share_bytes = buffer_bytes // max(len(starts), 1)
    piece_bytes = min(LARGEST_PIECE_BYTES, max(SMALLEST_PIECE_BYTES, share_bytes // 2))
    config = ConsumerConfig(
        read_committed=read_committed, partition_max_bytes=piece_bytes, prefetch_bytes=min(buffer_bytes, 1 << 24)
    )
    consumer = Consumer(client.cluster, config)
    client.run(consumer.assign(starts, ends))
    queues = [
        _Queue(topic_partition, offset, ends[topic_partition])
        for topic_partition, offset in sorted(consumer.positions.items())
    ]
    filler = _Filler(client, consumer, ends, share_bytes)
    heads: list[tuple[int, int, Record]] = []
    empty = list(range(len(queues)))
    while True:
        while empty:
            index = empty.pop()
            queue = queues[index]
            while (record := queue.next_record()) is None and not queue.complete:
                filler.fill(queue, queues)
            if record is not None:
                heapq.heappush(heads, (record.timestamp, index, record))
        if not heads:
            consumer.close()
            return
        _, index, record = heapq.heappop(heads)
        yield queues[index].topic_partition, record
        empty.append(index)


class _Filler:
    """Fetches more: always for the queue that is waited for, and for the others that have room."""

    def __init__(
        self, client: BlockingClient, consumer: Consumer, ends: Mapping[TopicPartition, int], share_bytes: int
    ) -> None:
        self._client = client
        self._consumer = consumer
        self._ends = ends
        self._share_bytes = share_bytes

    def fill(self, wanted: _Queue, queues: list[_Queue]) -> None:
        """Returns when a piece for `wanted` has arrived."""
        before = wanted.next_offset
        by_partition = {queue.topic_partition: queue for queue in queues}
        while wanted.next_offset == before:
            roomy = [
                queue
                for queue in queues
                if not queue.complete and (queue is wanted or queue.buffered_bytes < self._share_bytes)
            ]
            starts = {queue.topic_partition: Start(offset=queue.next_offset) for queue in roomy}
            if starts.keys() != self._consumer.positions.keys():
                self._client.run(self._consumer.assign(starts, self._ends))
            self._client.loop.run_until(self._consumer.arrival())
            for fetched in self._consumer.poll():
                by_partition[fetched.topic_partition].add(fetched)
