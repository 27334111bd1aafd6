"""The consumer: reads assigned partitions from where it is told, all of their leaders at once.

`assign` finds the starting offsets; from then on each leader has one Fetch waiting at it, for every partition of its
whose last data has been taken. `poll` hands over what has come and asks for more in the same breath, so brokers work
while the caller reads. Leaders that move are followed; an offset that is no longer there is an error unless the caller
chose where to go then.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quire.client.backoff import Backoff
from quire.client.cluster import Cluster
from quire.client.errors import ClientError, UnsupportedError
from quire.client.fetched import AbortedTransaction, Fetched
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.client.refresher import Refresher
from quire.client.steps import Steps, perform
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from quire.protocol.records import walk_batches
from quire.protocol.schema import Message


class Start(NamedTuple):
    """Where to begin: at an offset, or at the first record at or after a time."""

    offset: int | None = None
    timestamp_ms: int | None = None


BEGINNING = Start(timestamp_ms=EARLIEST)
END = Start(timestamp_ms=LATEST)


@dataclass(slots=True, frozen=True)
class ConsumerConfig:
    """Kafka's settings of the same names. `reset` is where to go on when an offset is gone; None makes it an error."""

    read_committed: bool = False
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 16 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024
    reset: Start | None = None


class _Position:
    """How far one partition has been read, and whether more is on its way."""

    __slots__ = ("backoff", "fetched", "fetching", "offset", "place", "rest_until_ms")

    def __init__(self, place: TopicPartition, offset: int, backoff: Backoff) -> None:
        self.place = place
        self.offset = offset
        self.fetched: Fetched | None = None
        self.fetching = False
        self.rest_until_ms = 0.0
        self.backoff = backoff


class Consumer:
    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig | None = None,
        moved: Callable[[TopicPartition, int], None] = lambda place, offset: None,
    ) -> None:
        """`moved` is told when an offset was not there any more, and where reading goes on instead."""
        self.config = config or ConsumerConfig()
        self._cluster = cluster
        self._clock = cluster.clock
        self._moved = moved
        self._positions: dict[TopicPartition, _Position] = {}
        self._fetching: dict[int, bool] = {}
        self._refresher = Refresher(cluster, self._topics, self._refreshed)
        self._arrival: Pending[None] | None = None
        self._failure: Exception | None = None
        self._closed = False

    def assign(self, starts: Mapping[TopicPartition, Start]) -> Steps[None]:
        """Reads these partitions from now on, and no others."""
        yield from self._cluster.refresh(sorted({place.topic for place in starts}))
        for place in starts:
            topic = self._cluster.metadata.topics.get(place.topic)
            if topic is None or place.partition not in topic.partitions:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{place} does not exist")
        offsets = yield from self._resolve(starts)
        self._positions = {place: _Position(place, offsets[place], Backoff(self._cluster.random)) for place in starts}
        self._pump()

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to be read, by partition; what `poll` handed over counts as read."""
        return {
            place: position.offset if position.fetched is None else position.fetched.from_offset
            for place, position in self._positions.items()
        }

    def poll(self) -> list[Fetched]:
        """What has come, at most one piece per partition, and asks for more. Raises what reading cannot go on after."""
        if self._failure is not None:
            raise self._failure
        taken: list[Fetched] = []
        for position in list(self._positions.values()):
            if position.fetched is not None:
                taken.append(position.fetched)
                position.fetched = None
                # Behind the others now, so that a full partition cannot starve them of room in a fetch.
                self._positions[position.place] = self._positions.pop(position.place)
        self._pump()
        return taken

    def arrival(self) -> Pending[None]:
        """Comes back when `poll` has something to say."""
        arrival: Pending[None] = Pending()
        if self._failure is not None or any(position.fetched for position in self._positions.values()):
            arrival.complete(None)
        else:
            self._arrival = arrival
        return arrival

    def fail(self, error: Exception) -> None:
        """Reading cannot go on, which `poll` says; the first reason counts."""
        if self._failure is None:
            self._failure = error
        self.wake()

    def wake(self) -> None:
        """Lets whoever waits for an arrival look again."""
        if self._arrival is not None:
            arrival, self._arrival = self._arrival, None
            arrival.complete_once(None)

    def close(self) -> None:
        self._closed = True
        self._refresher.close()

    # -- asking -----------------------------------------------------------------------------------------------------

    def _topics(self) -> list[str]:
        return list(dict.fromkeys(place.topic for place in self._positions))

    def _resolve(self, starts: Mapping[TopicPartition, Start]) -> Steps[dict[TopicPartition, int]]:
        offsets = {place: start.offset for place, start in starts.items() if start.offset is not None}
        times = {place: start.timestamp_ms for place, start in starts.items() if start.timestamp_ms is not None}
        isolation_level = int(self.config.read_committed)
        found = yield from list_offsets(self._cluster, times, isolation_level=isolation_level)
        after_all = {place: LATEST for place, at in found.items() if at.offset < 0}
        found |= yield from list_offsets(self._cluster, after_all, isolation_level=isolation_level)
        return offsets | {place: at.offset for place, at in found.items()}

    def _pump(self) -> None:
        """One Fetch to every leader that has none, for all of its partitions that are ready for more."""
        if self._closed:
            return
        now_ms = self._clock.monotonic_ms()
        by_leader: dict[int, list[_Position]] = {}
        for place, position in self._positions.items():
            if position.fetching or position.fetched is not None or now_ms < position.rest_until_ms:
                continue
            leader = self._cluster.metadata.leader(*place)
            if leader is None:
                self._rest(position)
                self._refresher.request()
            elif not self._fetching.get(leader):
                by_leader.setdefault(leader, []).append(position)
        for leader, positions in by_leader.items():
            self._fetch(leader, positions)

    def _fetch(self, leader: int, positions: list[_Position]) -> None:
        config, metadata = self.config, self._cluster.metadata
        topics: dict[str, FetchTopic] = {}
        for position in positions:
            position.fetching = True
            name = position.place.topic
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchTopic(topic=name, topic_id=metadata.topics[name].topic_id)
            topic.partitions.append(
                FetchPartition(
                    partition=position.place.partition,
                    current_leader_epoch=metadata.leader_epoch(*position.place),
                    fetch_offset=position.offset,
                    partition_max_bytes=config.partition_max_bytes,
                )
            )
        request = FetchRequest(
            max_wait_ms=config.max_wait_ms,
            min_bytes=config.min_bytes,
            max_bytes=config.max_bytes,
            isolation_level=int(config.read_committed),
            topics=list(topics.values()),
        )
        self._fetching[leader] = True
        timeout_ms = self._cluster.request_timeout_ms + config.max_wait_ms
        self._cluster.call(leader, request, timeout_ms=timeout_ms).when_done(
            lambda outcome: self._answered(leader, positions, outcome)
        )

    # -- answers ----------------------------------------------------------------------------------------------------

    def _answered(self, leader: int, positions: list[_Position], outcome: Message | Exception | None) -> None:
        self._fetching[leader] = False
        by_place = {position.place: position for position in positions}
        for position in positions:
            position.fetching = False
        if isinstance(outcome, FetchResponse):
            if outcome.error_code:
                code = ErrorCode(outcome.error_code)
                self.fail(ApiError(code, f"the broker refused to be read from ({code.name})"))
            for topic in outcome.responses:
                name = topic.topic or self._cluster.metadata.names_by_id.get(topic.topic_id, "")
                for answer in topic.partitions:
                    asked = by_place.get(TopicPartition(name, answer.partition_index))
                    if asked is not None and self._positions.get(asked.place) is asked:
                        self._take(asked, answer)
        elif isinstance(outcome, UnsupportedError):
            self.fail(outcome)
        else:
            for position in positions:
                self._rest(position)
            self._refresher.request()
        self._pump()

    def _take(self, position: _Position, answer: PartitionData) -> None:
        code = ErrorCode(answer.error_code)
        if code == ErrorCode.NONE:
            position.backoff.reset()
            if answer.records is not None and len(answer.records):
                self._keep(position, answer)
            return
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(position, answer)
            return
        if not code.retriable or code == ErrorCode.CORRUPT_MESSAGE:
            self.fail(ApiError(code, f"{position.place} cannot be read at offset {position.offset} ({code.name})"))
            return
        named = answer.current_leader
        if not self._cluster.metadata.new_leader(*position.place, named.leader_id, named.leader_epoch):
            self._rest(position)
            self._refresher.request()

    def _keep(self, position: _Position, answer: PartitionData) -> None:
        records = answer.records
        assert isinstance(records, (bytes, bytearray, memoryview))
        batches = walk_batches(records)
        if not batches:
            self.fail(ClientError(f"{position.place}: the broker sent half a batch at offset {position.offset}"))
            return
        aborted = [AbortedTransaction(old.producer_id, old.first_offset) for old in answer.aborted_transactions or []]
        fetched = Fetched(
            position.place,
            position.offset,
            batches[-1].next_offset,
            answer.high_watermark,
            records,
            aborted if self.config.read_committed else [],
        )
        position.offset = fetched.next_offset
        position.fetched = fetched
        self.wake()

    def _out_of_range(self, position: _Position, answer: PartitionData) -> None:
        if self.config.reset is None:
            self.fail(
                ApiError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"offset {position.offset} of {position.place} is not there; "
                    f"the partition begins at {max(answer.log_start_offset, 0)}",
                )
            )
            return
        position.fetching = True

        def found(outcome: dict[TopicPartition, int] | Exception) -> None:
            position.fetching = False
            if isinstance(outcome, Exception):
                self.fail(outcome)
            else:
                position.offset = outcome[position.place]
                self._moved(position.place, position.offset)
                self._pump()
                self.wake()

        perform(self._resolve({position.place: self.config.reset})).when_done(found)

    def _rest(self, position: _Position) -> None:
        delay_ms = position.backoff.next_ms()
        position.rest_until_ms = self._clock.monotonic_ms() + delay_ms
        self._clock.call_later(delay_ms + 1, self._pump)

    def _refreshed(self, outcome: Exception | None) -> None:
        if outcome is None:
            for place in self._positions:
                if place.topic not in self._cluster.metadata.topics:
                    self.fail(ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {place.topic} was deleted"))
                    return
        self._pump()
