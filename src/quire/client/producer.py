"""The producer: collects records into batches, and sends them to the leaders until they are delivered or have failed.

It is idempotent by default: every record of a partition is in the log once and in the order sent, through retries and
leader changes. Call `prepare` for a topic first, which finds its partitions; after that `send` never waits. A caller
that sends faster than the brokers accept checks `buffered_bytes`, and lets the loop run in between. With a
transactional id, call `init_transactions` first, and send records between `begin` and `commit` or `abort`.

`partition_queue` keeps the order and the sequence numbers of a partition's batches, `transactions` talks to
coordinators. This module decides which batches go to which broker when, and applies the responses.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quire.client.accumulator import Accumulator, Headers
from quire.client.backoff import Backoff
from quire.client.batch import Batch, Delivery, Identity, Receipt
from quire.client.cluster import Cluster
from quire.client.errors import ClientError, TimedOutError
from quire.client.group_offsets import OUTSIDER, Committer, OffsetAndMetadata
from quire.client.metadata import Topic
from quire.client.offsets import TopicPartition
from quire.client.partition_queue import PartitionQueue
from quire.client.produce_responses import Verdict, judge, produce_request, read_responses
from quire.client.producer_identity import ProducerIdentity
from quire.client.refresher import Refresher
from quire.client.transaction_state import TransactionEvent
from quire.client.transactions import Transactions
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Compression
from quire.protocol.schema import Message
from quire.steps import Steps, sleep

SWEEP_MS = 1000.0


@dataclass(slots=True, frozen=True)
class ProducerConfig:
    """Kafka's settings of the same names; sizes are those before compression."""

    acks: int = -1
    idempotent: bool = True
    compression: Compression = Compression.NONE
    compression_level: int | None = None
    linger_ms: float = 5
    batch_bytes: int = 16_384
    request_bytes: int = 1_048_576
    in_flight: int = 5
    delivery_timeout_ms: float = 120_000
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000

    def __post_init__(self) -> None:
        if self.acks not in (-1, 0, 1):
            raise ClientError(f"acks={self.acks} is not valid; choose 0, 1 or all (-1)")
        if self.idempotent and self.acks != -1:
            raise ClientError("an idempotent producer needs acks=all")
        if self.transactional_id is not None and not self.idempotent:
            raise ClientError("a producer with a transactional id must be idempotent")


class Producer:
    def __init__(self, cluster: Cluster, config: ProducerConfig | None = None) -> None:
        self.config = config or ProducerConfig()
        self._cluster = cluster
        self._clock = cluster.clock
        self._accumulator = Accumulator(
            cluster, self.config.batch_bytes, self.config.delivery_timeout_ms, self._opening, self._filled
        )
        self._queues = self._accumulator.queues
        self._waiting: OrderedDict[TopicPartition, PartitionQueue] = OrderedDict()
        self._requests: dict[int, int] = {}
        self._backoffs: dict[TopicPartition, Backoff] = {}
        self._identity = ProducerIdentity(cluster, self._schedule) if self.config.idempotent else None
        self._transactions = self._new_transactions()
        self._refresher = Refresher(cluster, self._accumulator.topics, lambda _: self._schedule(), create=True)
        self._undelivered = 0
        self._flushes: list[Pending[None]] = []
        self._scheduled = False
        self._lingering = False
        self._sweeping = False
        self._closed = False
        self.delivered_records = 0
        self.failed_records = 0
        self.first_error: Exception | None = None

    # --- Sending

    def prepare(self, topic: str) -> Steps[Topic]:
        """Obtains a producer id and the leaders of a topic; creates the topic if the broker allows it."""
        if self._identity is not None and self._transactions is None:
            yield from self._identity.obtain()
        backoff = Backoff(self._cluster.random)
        deadline_ms = self._clock.monotonic_ms() + self._cluster.request_timeout_ms
        while True:
            yield from self._cluster.refresh([topic], create=True)
            known = self._cluster.metadata.topics.get(topic)
            if known is not None and known.led:
                return known
            code = known.error if known is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if (code and not code.retriable) or self._clock.monotonic_ms() > deadline_ms:
                raise ApiError(code or ErrorCode.LEADER_NOT_AVAILABLE, f"topic {topic} cannot be written to")
            yield from sleep(self._clock, backoff.next_ms())

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Receipt:
        """Adds one record. The topic must be prepared."""
        return self._accumulator.add(topic, value, key, headers, partition, timestamp_ms)

    def send_values(
        self,
        topic: str,
        values: Sequence[bytes],
        *,
        headers: Headers | None = None,
        partition: int | None = None,
    ) -> None:
        """Adds many records without keys, for a fraction of the cost of as many calls of `send`."""
        self._accumulator.add_values(topic, values, headers, partition)

    def send_encoded(self, topic: str, partition: int, plain: bytearray, count: int, timestamp_ms: int) -> Delivery:
        """Adds a whole batch that is encoded except for its header; all records have the same timestamp.

        `plain` has room for the header and then `count` records, as `arrow_rows_native` writes them, and belongs to
        the producer from now on. It is compressed and gets its sequence number when it is sent, and is not divided.
        """
        return self._accumulator.add_encoded(topic, partition, plain, count, timestamp_ms)

    @property
    def identity(self) -> Identity | None:
        """The current producer id and epoch, if it is idempotent and has obtained them."""
        return None if self._identity is None else self._identity.current

    @property
    def buffered_bytes(self) -> int:
        """The size of the records that are not delivered yet, before compression."""
        return self._accumulator.buffered_bytes

    @property
    def undelivered_records(self) -> int:
        """How many records are neither delivered nor failed; those in flight may be in the log."""
        return sum(queue.record_count for queue in self._queues.values())

    def flush(self) -> Pending[None]:
        """Sends all records without lingering; completed when every record is delivered or has failed."""
        flushed: Pending[None] = Pending()
        for queue in self._queues.values():
            self._close_open(queue)
        if self._undelivered:
            self._flushes.append(flushed)
            self._drain()
        else:
            flushed.complete(None)
        return flushed

    def close(self) -> None:
        """Stops at once; records that are not delivered fail. Call `flush` first to deliver them."""
        self._closed = True
        self._refresher.close()
        self._drop(ClientError("the producer was closed"))

    # --- Transactions

    def init_transactions(self) -> Steps[None]:
        """Fences the previous producer with this transactional id, and waits until its open transaction is aborted."""
        return self._transactional().init()

    def begin(self) -> None:
        """Begins a transaction; no request is sent before its first record."""
        self._transactional().begin()

    def send_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], member: Committer | None = None
    ) -> Steps[None]:
        """Adds a group's offsets to the transaction, as a member of the group or for a group without members."""
        return self._transactional().send_offsets(group_id, offsets, member or OUTSIDER)

    def commit(self) -> Steps[None]:
        """Delivers all records and commits. If a record fails, it raises that error; then only `abort` is possible.

        If it raises a ClientError because there was no response, the result is unknown: call it again.
        """
        transactions = self._transactional()
        transactions.state.apply(TransactionEvent.COMMIT)
        yield self.flush()
        yield from transactions.end(committed=True)

    def abort(self) -> Steps[None]:
        """Drops records that were not sent, waits for those in flight, and aborts the transaction."""
        transactions = self._transactional()
        transactions.state.apply(TransactionEvent.ABORT)
        self._drop(ClientError("the transaction was aborted before the record was sent"))
        yield self.flush()
        yield from transactions.end(committed=False)

    def _transactional(self) -> Transactions:
        if self._transactions is None:
            raise ClientError("the producer has no transactional id; set one to use transactions")
        return self._transactions

    def _new_transactions(self) -> Transactions | None:
        config = self.config
        if config.transactional_id is None or self._identity is None:
            return None
        return Transactions(
            self._cluster,
            config.transactional_id,
            self._identity,
            timeout_ms=config.transaction_timeout_ms,
            patience_ms=config.delivery_timeout_ms,
            changed=self._schedule,
            broken=self._drop,
        )

    # --- Batches

    def _opening(self) -> None:
        """Called before a batch is opened: checks that a transaction is open, and starts the timers."""
        if self._transactions is not None:
            self._transactions.check_open()
        self._undelivered += 1
        if not self._lingering:
            self._lingering = True
            self._clock.call_later(self.config.linger_ms, self._linger_over)
        if not self._sweeping:
            self._sweeping = True
            self._clock.call_later(SWEEP_MS, self._sweep)

    def _filled(self, queue: PartitionQueue) -> None:
        self._close_open(queue)
        self._schedule()

    def _close_open(self, queue: PartitionQueue) -> None:
        if queue.open is not None:
            queue.close_open()
            self._waiting[queue.topic_partition] = queue

    def _linger_over(self) -> None:
        self._lingering = False
        for queue in self._queues.values():
            self._close_open(queue)
        self._drain()

    # --- Requests

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._clock.call_soon(self._drain)

    def _drain(self) -> None:
        """Sends what may be sent: up to `in_flight` requests per leader, with one batch per partition in each."""
        self._scheduled = False
        if self._identity is not None and self._identity.current is None:
            if self._transactions is None:
                self._identity.request()
            return
        by_leader: dict[int, list[PartitionQueue]] = {}
        for topic_partition, queue in list(self._waiting.items()):
            if not queue.ready:
                del self._waiting[topic_partition]
                continue
            leader = self._cluster.metadata.leader(*topic_partition)
            if leader is None:
                self._refresher.request()
            else:
                by_leader.setdefault(leader, []).append(queue)
        for leader, queues in by_leader.items():
            while self._requests.get(leader, 0) < self.config.in_flight:
                batches = self._take(leader, queues)
                if not batches:
                    break
                self._send(leader, batches)

    def _take(self, leader: int, queues: Sequence[PartitionQueue]) -> list[Batch]:
        batches: list[Batch] = []
        size_bytes = 0
        now_ms = self._clock.monotonic_ms()
        identity = None if self._identity is None else self._identity.current
        for queue in queues:
            if not queue.sendable(leader, identity, now_ms):
                continue
            if self._transactions is not None and not self._transactions.admits(queue.topic_partition):
                continue
            size_bytes += queue.ready[0].size_bytes
            if batches and size_bytes > self.config.request_bytes:
                break
            batches.append(queue.take(leader, identity))
            if queue.topic_partition in self._waiting:
                self._waiting.move_to_end(queue.topic_partition)
        return batches

    def _send(self, leader: int, batches: list[Batch]) -> None:
        config = self.config
        compression, level, transactional = config.compression, config.compression_level, self._transactions is not None
        request = produce_request(
            self._cluster.metadata,
            [
                (batch.topic_partition, batch.encode(compression, level, transactional=transactional))
                for batch in batches
            ],
            config.acks,
            int(self._cluster.request_timeout_ms),
            config.transactional_id,
        )
        versions = None if self._transactions is None else self._transactions.versions.produce
        self._requests[leader] = self._requests.get(leader, 0) + 1
        self._cluster.call(leader, request, answered=config.acks != 0, versions=versions).when_done(
            lambda outcome: self._answered(leader, batches, outcome)
        )

    # --- Responses

    def _answered(self, leader: int, batches: list[Batch], outcome: Message | Exception | None) -> None:
        self._requests[leader] -= 1
        answers = read_responses(self._cluster.metadata, outcome)
        for batch in batches:
            verdict = judge(
                answers.get(batch.topic_partition), outcome, self._queues[batch.topic_partition].is_oldest(batch)
            )
            if self._closed or (self._transactions is not None and not self._transactions.may_retry(verdict)):
                verdict = verdict._replace(retry=False, new_epoch=False)
            self._settle(batch, verdict)
        self._drain()

    def _settle(self, batch: Batch, verdict: Verdict) -> None:
        queue = self._queues[batch.topic_partition]
        if verdict.refresh:
            self._refresher.request()
        if verdict.error is None:
            self._backoffs.pop(batch.topic_partition, None)
            queue.delivered(batch)
            self._finish(batch, None, verdict.base_offset, verdict.timestamp_ms)
            return
        if verdict.new_epoch:
            self._start_over(queue, verdict.error)
        error = verdict.error
        if verdict.retry and self._clock.monotonic_ms() >= batch.deadline_ms:
            error = self._timeout_error(error)
        elif verdict.retry and queue.retry(batch, uncertain=verdict.uncertain):
            self._back_off(queue)
            return
        queue.given_up(batch)
        self._give_up(queue, batch, error)

    def _back_off(self, queue: PartitionQueue) -> None:
        """Waits for the back-off before a refused partition is retried."""
        backoff = self._backoffs.get(queue.topic_partition)
        if backoff is None:
            backoff = self._backoffs[queue.topic_partition] = Backoff(self._cluster.random)
        delay_ms = backoff.next_ms()
        queue.backoff_until_ms = self._clock.monotonic_ms() + delay_ms
        self._waiting[queue.topic_partition] = queue
        self._clock.call_later(delay_ms + 1, self._schedule)

    def _give_up(self, queue: PartitionQueue, batch: Batch, error: Exception) -> None:
        if self._transactions is not None and not self._closed:
            # Before `_finish`: the waiter of the transaction's last record would commit it.
            self._transactions.record_failed(error)
        self._finish(batch, error)
        if self._transactions is None and queue.counts(batch):
            self._start_over(queue, error)

    def _drop(self, error: Exception) -> None:
        """Fails all batches that are not in flight: their transaction will not be committed."""
        for queue in self._queues.values():
            queue.close_open()
            for batch in queue.drop():
                self._finish(batch, error)

    def _start_over(self, queue: PartitionQueue, error: Exception) -> None:
        """After a missing batch, the partition's sequence numbers start again at 0 in the next epoch."""
        if self._identity is None:
            return
        for lost in queue.start_over():
            self._finish(lost, error)
        self._identity.bump()

    def _finish(self, batch: Batch, error: Exception | None, base_offset: int = -1, timestamp_ms: int = -1) -> None:
        self._undelivered -= 1
        self._accumulator.buffered_bytes -= batch.records_bytes
        if error is None:
            self.delivered_records += batch.delivery.count
        else:
            self.failed_records += batch.delivery.count
            self.first_error = self.first_error or error
        batch.delivery.base_offset = base_offset
        batch.delivery.timestamp_ms = timestamp_ms
        batch.delivery.done.complete(error)
        if not self._undelivered:
            flushes, self._flushes = self._flushes, []
            for flushed in flushes:
                flushed.complete(None)

    def _timeout_error(self, error: Exception | None) -> TimedOutError:
        limit = f"not delivered within {self.config.delivery_timeout_ms / 1000:g} s"
        return TimedOutError(limit if error is None else f"{limit}; the last error was: {error}")

    def _sweep(self) -> None:
        """Fails batches that have waited too long; runs once a second while batches are undelivered."""
        now_ms = self._clock.monotonic_ms()
        for queue in self._queues.values():
            for batch in queue.expire(now_ms):
                self._give_up(queue, batch, self._timeout_error(None))
        self._sweeping = self._undelivered > 0
        if self._sweeping:
            self._clock.call_later(SWEEP_MS, self._sweep)
