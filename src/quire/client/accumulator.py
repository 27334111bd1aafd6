"""Collects a producer's records: chooses a partition for each, and adds it to the open batch of that partition.

Records are added one by one, as a list of values, or as the bytes of a whole batch that the caller has encoded; within
a partition they keep their order. `Producer` owns this, and decides when a batch that is not full is closed and what is
sent.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from quire.client.batch import Batch, Delivery, Receipt, estimate_bytes
from quire.client.cluster import Cluster
from quire.client.errors import ClientError
from quire.client.metadata import Topic
from quire.client.offsets import TopicPartition
from quire.client.partition_queue import PartitionQueue
from quire.client.partitioner import StickyPartitioner, partition_for_key
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Record

Headers = list[tuple[str, bytes | None]]
NO_HEADERS: Headers = []  # shared by all records without headers; must not be changed


class _Outlet:
    """One topic that is written to."""

    __slots__ = ("name", "queues", "sticky")

    def __init__(self, name: str, sticky: StickyPartitioner) -> None:
        self.name = name
        self.sticky = sticky
        self.queues: dict[int, PartitionQueue] = {}


class Accumulator:
    """`opening` is called before a batch is opened and may raise, `filled` with the queue whose open batch is full."""

    def __init__(
        self,
        cluster: Cluster,
        batch_bytes: int,
        delivery_timeout_ms: float,
        opening: Callable[[], None],
        filled: Callable[[PartitionQueue], None],
    ) -> None:
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.buffered_bytes = 0
        self._cluster = cluster
        self._clock = cluster.clock
        self._batch_bytes = batch_bytes
        self._delivery_timeout_ms = delivery_timeout_ms
        self._opening = opening
        self._filled = filled
        self._outlets: dict[str, _Outlet] = {}
        self._order = 0

    def topics(self) -> list[str]:
        return list(self._outlets)

    def add(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> Receipt:
        size_bytes = estimate_bytes(key, value, headers)
        outlet = self._outlets.get(topic) or self._new_outlet(topic)
        if partition is None:
            known = self._known(topic)
            if key is not None:
                partition = partition_for_key(key, len(known.partitions))
            else:
                partition = outlet.sticky.choose(known, size_bytes)
        queue = outlet.queues.get(partition) or self._new_queue(outlet, partition)
        batch = queue.open
        if batch is None or batch.size_bytes + size_bytes > self._batch_bytes:
            batch = self._new_batch(queue)
        self.buffered_bytes += size_bytes
        if timestamp_ms is None:
            timestamp_ms = self._clock.now_ms()
        return batch.add(Record(0, timestamp_ms, key, value, headers or NO_HEADERS), size_bytes)

    def add_values(self, topic: str, values: Sequence[bytes], headers: Headers | None, partition: int | None) -> None:
        """Adds many records without keys, one batch at a time to a partition."""
        outlet = self._outlets.get(topic) or self._new_outlet(topic)
        known = self._known(topic)
        now_ms = self._clock.now_ms()
        overhead_bytes = estimate_bytes(None, None, headers)
        ends = list(accumulate(len(value) + overhead_bytes for value in values))
        start, start_bytes = 0, 0
        while start < len(values):
            chosen = outlet.sticky.choose(known, 0) if partition is None else partition
            queue = outlet.queues.get(chosen) or self._new_queue(outlet, chosen)
            batch = queue.open
            if batch is None or batch.size_bytes + ends[start] - start_bytes > self._batch_bytes:
                batch = self._new_batch(queue)
            room_bytes = self._batch_bytes - batch.size_bytes
            stop = max(start + 1, bisect_right(ends, start_bytes + room_bytes, start))
            size_bytes = ends[stop - 1] - start_bytes
            shared = headers or NO_HEADERS
            batch.extend([Record(0, now_ms, None, value, shared) for value in values[start:stop]], size_bytes)
            self.buffered_bytes += size_bytes
            outlet.sticky.used(size_bytes)
            start, start_bytes = stop, ends[stop - 1]

    def add_encoded(self, topic: str, partition: int, plain: bytearray, count: int, timestamp_ms: int) -> Delivery:
        """Adds a whole batch, which is not divided, after the records that were added to its partition before."""
        outlet = self._outlets.get(topic) or self._new_outlet(topic)
        queue = outlet.queues.get(partition) or self._new_queue(outlet, partition)
        batch = self._new_batch(queue)
        batch.fill(plain, count, timestamp_ms)
        self.buffered_bytes += batch.records_bytes
        self._filled(queue)
        return batch.delivery

    def _known(self, topic: str) -> Topic:
        known = self._cluster.metadata.topics.get(topic)
        if known is None or not known.partitions:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} does not exist, or was not prepared")
        return known

    def _new_outlet(self, topic: str) -> _Outlet:
        self._known(topic)
        outlet = _Outlet(topic, StickyPartitioner(self._cluster.random, self._batch_bytes))
        self._outlets[topic] = outlet
        return outlet

    def _new_queue(self, outlet: _Outlet, partition: int) -> PartitionQueue:
        partitions = self._known(outlet.name).partitions
        if partition not in partitions:
            raise ClientError(f"topic {outlet.name} has no partition {partition}; it has 0 to {len(partitions) - 1}")
        queue = PartitionQueue(TopicPartition(outlet.name, partition))
        self.queues[queue.topic_partition] = outlet.queues[partition] = queue
        return queue

    def _new_batch(self, queue: PartitionQueue) -> Batch:
        self._opening()
        if queue.open is not None:
            self._filled(queue)
        queue.open = Batch(queue.topic_partition, self._order, self._clock.monotonic_ms() + self._delivery_timeout_ms)
        self._order += 1
        return queue.open
