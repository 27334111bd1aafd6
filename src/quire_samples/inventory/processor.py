"""The processor: executes every command once, in the order in which they were sent, through any crash.

Only one processor runs at a time. A processor that starts takes over: its transactional id fences the previous one, and
ends the transaction that it left open. Only then does it read the committed stock and the committed offsets, so it
continues exactly where the previous one stopped. Every event names its command, which lets the processor check the
offsets: offsets that were set back would repeat commands, and offsets that the cluster has expired are restored from
the events and refusals. The events and refusals of some commands are written in one transaction with the offset of the
next command, so either all of them count or none, and a command is never split.

The processor survives whatever its client survives: a node that restarts, leaders that move. A longer outage ends it.
It can be restarted at any time: nothing is lost, and nothing is done twice. It runs on the seams, so any program with a
Cluster can run it; `quire-samples inventory process` does.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from quire.client.cluster import Cluster
from quire.client.consumer import Consumer, Start
from quire.client.errors import ClientError
from quire.client.fetched import Fetched
from quire.client.group_offsets import OffsetAndMetadata, fetch_offsets
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer, ProducerConfig
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Record
from quire.protocol.uuids import to_text
from quire.steps import Steps, perform, sleep
from quire_samples.inventory.events import Refusal, Source, StockEvent, encode_event, encode_refusal
from quire_samples.inventory.reading import READ_COMMITTED, Stretch, read, readable, refused_at, whole
from quire_samples.inventory.seen import WINDOW, Seen
from quire_samples.inventory.stock import OutOfOrderError, Stock
from quire_samples.inventory.topics import ARCHIVE_LAG_MS, Topics, ensure_topics, grown, partitions_of

COMMANDS_AT_ONCE = 500
"""Commands in one transaction, which costs a few round trips, and whose end readers wait for."""
LOOK_AT_PARTITIONS_MS = 1_000.0
FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


class TakenOverError(ClientError):
    """Another processor has the transactional id now; this one must not be started again."""


@dataclass(slots=True, frozen=True)
class ProcessorConfig:
    topics: Topics = field(default_factory=Topics)
    name: str = "inventory-processor"
    """The transactional id, and the group that the offsets are committed for."""
    transaction_timeout_ms: int = 60_000
    commands_at_once: int = COMMANDS_AT_ONCE
    window: int = WINDOW
    archive_lag_ms: int = ARCHIVE_LAG_MS


@dataclass(slots=True)
class Tally:
    """What this processor has committed since it started."""

    commands: int = 0
    events: int = 0
    transactions: int = 0
    refusals: Counter[str] = field(default_factory=Counter)

    def add(self, outcomes: Iterable[list[StockEvent] | Refusal]) -> None:
        self.transactions += 1
        for outcome in outcomes:
            self.commands += 1
            if isinstance(outcome, Refusal):
                self.refusals[outcome.reason.value] += 1
            else:
                self.events += len(outcome)


class Processor:
    """`take_over` once, then `work` until `stop`."""

    def __init__(
        self,
        cluster: Cluster,
        config: ProcessorConfig | None = None,
        committed: Callable[[Tally], None] = lambda tally: None,
    ) -> None:
        """`committed` is called after every transaction."""
        self.config = config or ProcessorConfig()
        self.stock = Stock(Seen(self.config.window))
        self.tally = Tally()
        self._cluster = cluster
        self._committed = committed
        self._producer = Producer(
            cluster,
            ProducerConfig(
                transactional_id=self.config.name,
                transaction_timeout_ms=self.config.transaction_timeout_ms,
                batch_bytes=256 * 1024,
            ),
        )
        # On its own connections, so that writes do not wait behind a fetch that waits for commands.
        self._consumer = Consumer(cluster.beside(), READ_COMMITTED)
        self._done_to: dict[int, int] = {}
        self._last_events: dict[int, StockEvent] = {}
        self._events_id = ""
        self._stopped = False

    def take_over(self) -> Steps[None]:
        """Fences the previous processor, and restores its state."""
        topics = self.config.topics
        yield from ensure_topics(self._cluster, topics, self.config.archive_lag_ms)
        yield from self._producer.init_transactions()
        for topic in (topics.events, topics.refusals):
            yield from self._producer.prepare(topic)
        # Everything below must be read after the line above: until then the previous one may still write.
        yield from self._restore_levels()
        begin = yield from self._first_offsets()
        yield from self._restore_seen(begin)
        yield from self._consumer.assign(
            {topic_partition: Start(offset=offset) for topic_partition, offset in begin.items()}
        )

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset of the next command in each partition."""
        return self._consumer.positions

    def work(self) -> Steps[None]:
        """Executes commands until it is stopped; raises TakenOverError, or the error that ended it."""
        perform(self._look_at_partitions())
        while not self._stopped:
            yield self._consumer.arrival()
            for fetched in self._consumer.poll():
                for records, done_to in _portions(fetched, self.config.commands_at_once):
                    if self._stopped:
                        return
                    yield from self._carry_out(fetched.topic_partition, records, done_to)

    def _look_at_partitions(self) -> Steps[None]:
        """Ends this processor if partitions were added: only the next one reads their commands."""
        topic = self.config.topics.commands
        while not self._stopped:
            yield from sleep(self._cluster.clock, LOOK_AT_PARTITIONS_MS)
            try:
                topic_partitions = yield from partitions_of(self._cluster, topic)
            except (ApiError, ClientError):
                continue
            if len(topic_partitions) != len(self.positions):
                self._consumer.fail(grown(topic, len(self.positions), len(topic_partitions)))
                return

    def stop(self) -> None:
        """Ends `work` after the current transaction."""
        self._stopped = True
        self._consumer.wake()

    def close(self) -> None:
        self._stopped = True
        self._consumer.close()
        self._producer.close()

    # --- Taking over

    def _restore_levels(self) -> Steps[None]:
        topic_partitions = yield from partitions_of(self._cluster, self.config.topics.events)
        stretches = yield from whole(self._cluster, topic_partitions)

        def take(topic_partition: TopicPartition, record: Record) -> None:
            event = readable(topic_partition, record)
            try:
                self.stock.restore(event)
            except OutOfOrderError as error:
                raise ClientError(
                    f"{topic_partition} is not what one processor wrote: at offset {record.offset} {error}"
                ) from None
            self._handled(event.source)
            last = self._last_events.get(event.source.partition)
            if last is None or last.source.offset <= event.source.offset:
                self._last_events[event.source.partition] = event

        yield from read(self._cluster, stretches, take)
        self._events_id = to_text(self._cluster.metadata.topics[self.config.topics.events].topic_id)

    def _handled(self, source: Source) -> None:
        """Compaction keeps the last event of every item, and so also the last event of all."""
        self._done_to[source.partition] = max(self._done_to.get(source.partition, 0), source.offset + 1)

    def _first_offsets(self) -> Steps[dict[TopicPartition, int]]:
        topic_partitions = yield from partitions_of(self._cluster, self.config.topics.commands)
        committed = yield from fetch_offsets(self._cluster, self.config.name, topic_partitions, require_stable=True)
        if len(committed) < len(topic_partitions):
            yield from self._look_at_refusals()
        stretches = yield from whole(self._cluster, topic_partitions)
        begin: dict[TopicPartition, int] = {}
        for topic_partition, (first, end) in stretches.items():
            done_to = self._done_to.get(topic_partition.partition, 0)
            if topic_partition in committed:
                self._check_events_id(committed[topic_partition].metadata)
            offset = committed[topic_partition].offset if topic_partition in committed else max(first, done_to)
            if offset < done_to:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"group {self.config.name} says that the commands of {topic_partition} are done up to offset "
                    f"{offset}, but there is an event of the command at {done_to - 1}: the offset was set back, and "
                    f"commands would be executed twice; set it to {done_to} or later with `quire groups`",
                )
            if not first <= offset <= end:
                raise ApiError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"the commands of {topic_partition} are done up to offset {offset}, but the partition has {first} "
                    f"to {end}: commands were removed before they were executed, or the topic was created again",
                )
            begin[topic_partition] = offset
        return begin

    def _check_events_id(self, noted: str) -> None:
        """Compares the topic's id with the one that was committed with the offsets: another topic lacks the stock."""
        if noted and noted != self._events_id:
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"the stock was kept in a topic {self.config.topics.events} with id {noted}, and the topic has id "
                f"{self._events_id} now: it was created again, and every level would begin at zero; start over "
                "with another --name and other topics",
            )

    def _look_at_refusals(self) -> Steps[None]:
        """Without a committed offset, the last command may be a refused one."""
        topic_partitions = yield from partitions_of(self._cluster, self.config.topics.refusals)
        stretches = yield from whole(self._cluster, topic_partitions)
        yield from read(
            self._cluster,
            stretches,
            lambda topic_partition, record: self._handled(refused_at(topic_partition, record)),
        )

    def _restore_seen(self, begin: dict[TopicPartition, int]) -> Steps[None]:
        stretches = yield from whole(self._cluster, list(begin))
        window = {
            topic_partition: Stretch(self.stock.seen.begin(offset, stretches[topic_partition].begin), offset)
            for topic_partition, offset in begin.items()
        }
        yield from read(self._cluster, window, self._check_record)

    def _check_record(self, topic_partition: TopicPartition, record: Record) -> None:
        command = self.stock.see(record.value, Source(topic_partition.partition, record.offset))
        event = self._last_events.get(topic_partition.partition)
        if event is not None and event.source.offset == record.offset and command != event.command:
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"the events say that command {event.command} is at offset {record.offset} of {topic_partition}, but "
                f"another record is there: topic {topic_partition.topic} was created again, and its first commands "
                "would be skipped; start over with another --name and other topics",
            )

    # --- Executing

    def _carry_out(self, topic_partition: TopicPartition, records: list[Record], done_to: int) -> Steps[None]:
        outcomes = [
            self.stock.decide(record.value, Source(topic_partition.partition, record.offset)) for record in records
        ]
        try:
            yield from self._write(outcomes, topic_partition, done_to)
        except (ApiError, ClientError) as error:
            yield from self._give_up(error)
        self.tally.add(outcomes)
        self._committed(self.tally)

    def _write(
        self, outcomes: list[list[StockEvent] | Refusal], topic_partition: TopicPartition, done_to: int
    ) -> Steps[None]:
        """Writes everything in one transaction."""
        producer, topics = self._producer, self.config.topics
        producer.begin()
        for outcome in outcomes:
            if isinstance(outcome, Refusal):
                producer.send(topics.refusals, encode_refusal(outcome), key=outcome.key.encode())
            else:
                for event in outcome:
                    producer.send(topics.events, encode_event(event), key=event.item.encode())
        yield from producer.send_offsets(
            self.config.name, {topic_partition: OffsetAndMetadata(done_to, self._events_id)}
        )
        yield from producer.commit()

    def _give_up(self, error: ApiError | ClientError) -> Steps[None]:
        """The transaction cannot be committed, and the stock in memory is ahead of the log: this processor ends.

        Only the coordinator can explain a partition's error about an old epoch, so it is asked to abort the
        transaction.
        """
        reason: Exception = error
        if not isinstance(error, ApiError) or error.code not in FENCED:
            raise error
        try:
            yield from self._producer.abort()
        except (ApiError, ClientError) as refusal:
            reason = refusal
        if isinstance(reason, ApiError) and reason.code in FENCED:
            raise TakenOverError(
                f"another processor has taken over as {self.config.name}, or this one paused for longer than its "
                f"transaction may take ({self.config.transaction_timeout_ms} ms); its open transaction is aborted"
            ) from reason
        raise reason


def _portions(fetched: Fetched, most: int) -> Iterable[tuple[list[Record], int]]:
    """The fetched commands in portions, one for each transaction, with the next offset after each."""
    records = list(fetched.records())
    for start in range(0, len(records), most):
        portion = records[start : start + most]
        last = start + most >= len(records)
        yield portion, fetched.next_offset if last else portion[-1].offset + 1
