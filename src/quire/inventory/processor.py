"""The processor: carries every command out once, in the order they were sent, whatever is killed in between.

There is one at a time. To start is to take over: its transactional id fences whoever had it, and finishes or undoes
what they left open. Only then does it look what the stock is and how far the commands are done, both as committed, so
it goes on exactly where the other ended. Every event names its command, so the two are held against each other: offsets
that somebody has set back would have commands done twice, and offsets of a group that was idle for too long are
forgotten by the cluster, which the events and refusals make up for. What a handful of commands lead to, all events and
refusals, is written in one transaction with the place to go on from: either all of it counts or nothing, and a command
is never split.

It rides out what its client rides out: a node that comes back, leaders that move. What lasts longer ends it, and it can
be started again at any time: nothing is lost and nothing done twice. Runs on the seams, so whoever has a Cluster can
run it; `quire inventory process` does.
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
from quire.inventory.events import Event, Refusal, Source, encode_event, encode_refusal
from quire.inventory.reading import READ_COMMITTED, Stretch, read, readable, refused_at, whole
from quire.inventory.seen import WINDOW, Seen
from quire.inventory.stock import OutOfOrderError, Stock
from quire.inventory.topics import ARCHIVE_LAG_MS, Topics, ensure_topics, grown, places_of
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Record
from quire.protocol.uuids import to_text
from quire.steps import Steps, perform, sleep

COMMANDS_AT_ONCE = 500
"""In one transaction: each costs a few round trips, and readers wait for its end."""
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

    def add(self, outcomes: Iterable[list[Event] | Refusal]) -> None:
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
        """`committed` is told after every transaction."""
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
        # On connections of its own: what is written does not wait behind a fetch that waits for commands.
        self._consumer = Consumer(cluster.beside(), READ_COMMITTED)
        self._done_to: dict[int, int] = {}
        self._last_events: dict[int, Event] = {}
        self._events_id = ""
        self._stopped = False

    def take_over(self) -> Steps[None]:
        """Becomes the processor, and knows all that the one before it knew."""
        topics = self.config.topics
        yield from ensure_topics(self._cluster, topics, self.config.archive_lag_ms)
        yield from self._producer.init_transactions()
        for topic in (topics.events, topics.refusals):
            yield from self._producer.prepare(topic)
        # Nothing below may be read before the line above: the one before could still have been writing.
        yield from self._restore_levels()
        begin = yield from self._where_to_go_on()
        yield from self._restore_seen(begin)
        yield from self._consumer.assign({place: Start(offset=offset) for place, offset in begin.items()})

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next command to be looked at, of each partition."""
        return self._consumer.positions

    def work(self) -> Steps[None]:
        """Carries commands out until it is stopped; raises TakenOverError, or what it cannot go on after."""
        perform(self._look_at_partitions())
        while not self._stopped:
            yield self._consumer.arrival()
            for fetched in self._consumer.poll():
                for records, done_to in _portions(fetched, self.config.commands_at_once):
                    if self._stopped:
                        return
                    yield from self._carry_out(fetched.place, records, done_to)

    def _look_at_partitions(self) -> Steps[None]:
        """Commands on a partition that was added would never be carried out: this one ends, and the next reads them."""
        topic = self.config.topics.commands
        while not self._stopped:
            yield from sleep(self._cluster.clock, LOOK_AT_PARTITIONS_MS)
            try:
                places = yield from places_of(self._cluster, topic)
            except (ApiError, ClientError):
                continue
            if len(places) != len(self.positions):
                self._consumer.fail(grown(topic, len(self.positions), len(places)))
                return

    def stop(self) -> None:
        """Ends `work` after the transaction that is under way."""
        self._stopped = True
        self._consumer.wake()

    def close(self) -> None:
        self._stopped = True
        self._consumer.close()
        self._producer.close()

    # -- taking over ------------------------------------------------------------------------------------------------

    def _restore_levels(self) -> Steps[None]:
        places = yield from places_of(self._cluster, self.config.topics.events)
        stretches = yield from whole(self._cluster, places)

        def take(place: TopicPartition, record: Record) -> None:
            event = readable(place, record)
            try:
                self.stock.restore(event)
            except OutOfOrderError as error:
                raise ClientError(
                    f"{place} is not what one processor wrote: at offset {record.offset} {error}"
                ) from None
            self._led_to_something(event.source)
            last = self._last_events.get(event.source.partition)
            if last is None or last.source.offset <= event.source.offset:
                self._last_events[event.source.partition] = event

        yield from read(self._cluster, stretches, take)
        self._events_id = to_text(self._cluster.metadata.topics[self.config.topics.events].topic_id)

    def _led_to_something(self, source: Source) -> None:
        """Compaction keeps the last event of every item, so it keeps the one of the last command that led to any."""
        self._done_to[source.partition] = max(self._done_to.get(source.partition, 0), source.offset + 1)

    def _where_to_go_on(self) -> Steps[dict[TopicPartition, int]]:
        places = yield from places_of(self._cluster, self.config.topics.commands)
        committed = yield from fetch_offsets(self._cluster, self.config.name, places, require_stable=True)
        if len(committed) < len(places):
            yield from self._look_at_refusals()
        stretches = yield from whole(self._cluster, places)
        begin: dict[TopicPartition, int] = {}
        for place, (first, end) in stretches.items():
            done_to = self._done_to.get(place.partition, 0)
            if place in committed:
                self._check_events_id(committed[place].metadata)
            offset = committed[place].offset if place in committed else max(first, done_to)
            if offset < done_to:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"group {self.config.name} says that the commands of {place} are done up to offset {offset}, but "
                    f"there is an event of the command at {done_to - 1}: somebody has set the offset back, and "
                    f"commands would be carried out twice; set it to {done_to} or later with `quire groups`",
                )
            if not first <= offset <= end:
                raise ApiError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"the commands of {place} are done up to offset {offset}, but the partition has {first} to {end}: "
                    f"commands were removed before they were carried out, or the topic was made anew",
                )
            begin[place] = offset
        return begin

    def _check_events_id(self, noted: str) -> None:
        """With the offsets stands which topic has the events: another one under its name knows nothing of the stock."""
        if noted and noted != self._events_id:
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"the stock was kept in a topic {self.config.topics.events} with id {noted}, and the one that is there "
                f"now has id {self._events_id}: it was made anew, and every level would begin at zero; begin anew "
                "with another --name and other topics",
            )

    def _look_at_refusals(self) -> Steps[None]:
        """Where no offset is committed, the last command may be one that was refused."""
        places = yield from places_of(self._cluster, self.config.topics.refusals)
        stretches = yield from whole(self._cluster, places)
        yield from read(
            self._cluster, stretches, lambda place, record: self._led_to_something(refused_at(place, record))
        )

    def _restore_seen(self, begin: dict[TopicPartition, int]) -> Steps[None]:
        stretches = yield from whole(self._cluster, list(begin))
        window = {
            place: Stretch(self.stock.seen.begin(offset, stretches[place].begin), offset)
            for place, offset in begin.items()
        }
        yield from read(self._cluster, window, self._see)

    def _see(self, place: TopicPartition, record: Record) -> None:
        command = self.stock.see(record.value, Source(place.partition, record.offset))
        event = self._last_events.get(place.partition)
        if event is not None and event.source.offset == record.offset and command != event.command:
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"the events say that command {event.command} is at offset {record.offset} of {place}, and something "
                f"else is there: topic {place.topic} was made anew, and what is before would never be carried out; "
                "begin anew with another --name and other topics",
            )

    # -- carrying out -----------------------------------------------------------------------------------------------

    def _carry_out(self, place: TopicPartition, records: list[Record], done_to: int) -> Steps[None]:
        outcomes = [self.stock.decide(record.value, Source(place.partition, record.offset)) for record in records]
        try:
            yield from self._write(outcomes, place, done_to)
        except (ApiError, ClientError) as error:
            yield from self._give_up(error)
        self.tally.add(outcomes)
        self._committed(self.tally)

    def _write(self, outcomes: list[list[Event] | Refusal], place: TopicPartition, done_to: int) -> Steps[None]:
        """All of it in one transaction."""
        producer, topics = self._producer, self.config.topics
        producer.begin()
        for outcome in outcomes:
            if isinstance(outcome, Refusal):
                producer.send(topics.refusals, encode_refusal(outcome), key=outcome.key.encode())
            else:
                for event in outcome:
                    producer.send(topics.events, encode_event(event), key=event.item.encode())
        yield from producer.send_offsets(self.config.name, {place: OffsetAndMetadata(done_to, self._events_id)})
        yield from producer.commit()

    def _give_up(self, error: ApiError | ClientError) -> Steps[None]:
        """The transaction cannot be committed, and the stock in memory is ahead of the log: this one is at its end.

        What a partition says of an old epoch only the coordinator can explain, so it is asked to undo what is open.
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
                f"another processor has taken over as {self.config.name}, or this one stood still for longer than its "
                f"transaction may take ({self.config.transaction_timeout_ms} ms); what it had not committed is undone"
            ) from reason
        raise reason


def _portions(fetched: Fetched, most: int) -> Iterable[tuple[list[Record], int]]:
    """What came, in portions for one transaction each, with the offset to go on from after it."""
    records = list(fetched.records())
    for start in range(0, len(records), most):
        portion = records[start : start + most]
        last = start + most >= len(records)
        yield portion, fetched.next_offset if last else portion[-1].offset + 1
