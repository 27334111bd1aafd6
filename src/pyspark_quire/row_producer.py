"""Sends a task's rows: collects them into one batch for each partition, and sends full batches.

Memory is bounded: while more than `buffer_bytes` are unacknowledged, `add` waits for the brokers. Rows without a key
fill the batch of one partition, then that of another.
"""

from functools import partial

from pyspark_quire.connect import run_patiently
from pyspark_quire.errors import QuireError
from pyspark_quire.options import (
    BATCH_BYTES,
    BUFFER_BYTES,
    COMPRESSION,
    DELIVERY_TIMEOUT_MS,
    GZIP_LEVEL,
    LZ4_LEVEL,
    REQUEST_BYTES,
    REQUEST_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS,
    ZSTD_LEVEL,
    Options,
)
from pyspark_quire.rows import Rows
from quire.client.arrow_rows_native import Lane, choose_partitions, encode_rows
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.protocol.records import Compression

_LEVELS = {Compression.GZIP: GZIP_LEVEL, Compression.LZ4: LZ4_LEVEL, Compression.ZSTD: ZSTD_LEVEL}
_WAIT_MS = 1000.0


def producer_config(options: Options, transactional_id: str | None = None) -> ProducerConfig:
    compression = Compression[options[COMPRESSION].upper()]
    level = _LEVELS.get(compression)
    return ProducerConfig(
        compression=compression,
        compression_level=None if level is None else options[level],
        request_bytes=options[REQUEST_BYTES],
        delivery_timeout_ms=options[DELIVERY_TIMEOUT_MS],
        transactional_id=transactional_id,
        transaction_timeout_ms=options[TRANSACTION_TIMEOUT_MS],
    )


class _Topic:
    """A lane for each partition."""

    __slots__ = ("lanes", "sticky")

    def __init__(self, partitions: int, sticky: int) -> None:
        self.lanes = [Lane() for _ in range(partitions)]
        self.sticky = sticky


class RowProducer:
    def __init__(self, client: BlockingClient, producer: Producer, options: Options) -> None:
        self._client = client
        self._producer = producer
        self._patience_ms = options[REQUEST_TIMEOUT_MS]
        self._batch_bytes = options[BATCH_BYTES]
        self._buffer_bytes = options[BUFFER_BYTES]
        self._topics: dict[str, _Topic] = {}
        self._failure: QuireError | None = None

    def add(self, rows: Rows) -> None:
        """Adds rows; raises QuireError as soon as earlier ones are known to have failed."""
        topic = self._topics.get(rows.topic) or self._prepare(rows.topic)
        chosen = memoryview(bytearray(4 * rows.count)).cast("i")
        wrong = choose_partitions(chosen, rows.keys, rows.wanted, rows.wanted_validity, len(topic.lanes))
        if wrong >= 0:
            assert rows.wanted is not None
            raise QuireError(
                f"a row has partition {rows.wanted[wrong]} for topic {rows.topic}, which has 0 to "
                f"{len(topic.lanes) - 1}; leave column partition null to let the sink choose"
            )
        row = 0
        while True:
            row = encode_rows(
                topic.lanes,
                chosen,
                rows.keys,
                rows.values,
                rows.headers,
                row,
                rows.count,
                topic.sticky,
                self._batch_bytes,
            )
            if row == rows.count:
                break
            self._lane_is_full(rows.topic, topic, chosen[row])
        self._bound_open_batches()
        self._run_loop()

    def finish(self) -> None:
        """Sends the batches that are not full; the producer retries them if necessary."""
        for name, topic in self._topics.items():
            for partition in range(len(topic.lanes)):
                self._send(name, topic, partition)

    def flush(self) -> None:
        """Waits until everything is written; raises QuireError if something could not be."""
        self.finish()
        self._client.loop.run_until(self._producer.flush())
        self.check()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _prepare(self, name: str) -> _Topic:
        known = run_patiently(self._client, lambda _: self._producer.prepare(name), self._patience_ms)
        partitions = len(known.partitions)
        topic = self._topics[name] = _Topic(partitions, self._client.cluster.random.below(partitions))
        return topic

    def _lane_is_full(self, name: str, topic: _Topic, chosen: int) -> None:
        partition = topic.sticky if chosen < 0 else chosen
        self._send(name, topic, partition)
        if partition == topic.sticky:
            topic.sticky = (partition + 1) % len(topic.lanes)
        self._run_loop()

    def _send(self, name: str, topic: _Topic, partition: int) -> None:
        lane = topic.lanes[partition]
        if count := lane.count:
            delivery = self._producer.send_encoded(name, partition, lane.take(), count, self._client.loop.now_ms())
            delivery.done.when_done(partial(self._delivered, delivery.topic_partition))

    def _delivered(self, topic_partition: TopicPartition, error: Exception | None) -> None:
        if error is not None and self._failure is None:
            self._failure = QuireError(f"rows could not be written to {topic_partition}: {error}")

    def _bound_open_batches(self) -> None:
        """With many partitions, batches are sent before they are full."""
        lanes = [lane for topic in self._topics.values() for lane in topic.lanes]
        if sum(lane.used for lane in lanes) > self._buffer_bytes // 2:
            self.finish()

    def _run_loop(self) -> None:
        self._client.loop.run_once(0)
        while self._producer.buffered_bytes > self._buffer_bytes and self._failure is None:
            self._client.loop.run_once(_WAIT_MS)
        self.check()
