"""Fetches ahead of the caller: keeps one Fetch in flight to every leader, within a budget of bytes.

Records are kept in pieces until `take` returns them, and more are fetched while the caller still reads. Leaders share
the budget, and partitions share that of their leader, so a partition with many records takes no room from the others.
The budget is never exceeded by more than one batch per leader. Fetches follow leaders that move, and retry after
retriable errors; the owner, `Consumer`, decides about all other errors.

A fetch occupies its leader while it waits there for records. So it waits only if it has all partitions of the leader: a
partition that has no room yet would otherwise be read only after the wait, although the caller has made room long
before. A fetch of some of them returns at once. If it finds nothing, the next one is sent when another partition can be
fetched, or after `max_wait_ms`.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from quire.client.backoff import Backoff
from quire.client.cluster import Cluster
from quire.client.errors import ClientError, UnsupportedError
from quire.client.fetch_session import FetchSession, Wanted
from quire.client.fetched import AbortedTransaction, Fetched
from quire.client.metadata import NO_ID
from quire.client.offsets import TopicPartition
from quire.client.refresher import Refresher
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from quire.protocol.records import walk_batches
from quire.protocol.schema import Message
from quire.seams import Timer


@dataclass(slots=True, frozen=True)
class FetchConfig:
    """Kafka's settings of the same names, and how many bytes may be kept that the caller has not read yet."""

    read_committed: bool = False
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 16 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024
    prefetch_bytes: int = 16 * 1024 * 1024


class Position:
    """The position in one partition, and the records of it that are kept."""

    __slots__ = (
        "backoff",
        "backoff_until_ms",
        "buffered_bytes",
        "end",
        "fetching",
        "halted",
        "offset",
        "pieces",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, offset: int, backoff: Backoff) -> None:
        self.topic_partition = topic_partition
        self.offset = offset  # the next one to fetch
        self.end: int | None = None  # fetching stops before this offset; None: it never stops
        self.pieces: deque[Fetched] = deque()
        self.buffered_bytes = 0
        self.fetching = False
        self.halted = False  # fetching met an error, which is reported when all pieces are taken
        self.backoff_until_ms = 0.0
        self.backoff = backoff

    @property
    def read_offset(self) -> int:
        """The next offset that `take` returns."""
        return self.pieces[0].from_offset if self.pieces else self.offset

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be fetched."""
        return self.end is not None and self.offset >= self.end

    def keep(self, piece: Fetched) -> None:
        self.pieces.append(piece)
        self.buffered_bytes += len(piece.batches)
        self.offset = piece.next_offset

    def take(self) -> Fetched:
        piece = self.pieces.popleft()
        self.buffered_bytes -= len(piece.batches)
        self.halted &= bool(self.pieces)
        return piece


class Pause(NamedTuple):
    """These partitions of a leader have no records, so they alone are not fetched again before the timer ends."""

    positions: frozenset[Position]
    timer: Timer


class Owner(Protocol):
    def arrived(self) -> None:
        """`take` has records."""

    def failed(self, error: Exception) -> None:
        """Reading cannot continue."""

    def out_of_range(self, position: Position, log_start_offset: int) -> None:
        """The position's offset does not exist; it is not fetched until `resume`."""


class Fetcher:
    def __init__(self, cluster: Cluster, config: FetchConfig, owner: Owner) -> None:
        self.positions: dict[TopicPartition, Position] = {}
        self._cluster = cluster
        self._clock = cluster.clock
        self._config = config
        self._owner = owner
        self._sessions: dict[int, FetchSession] = {}
        self._fetching: dict[int, bool] = {}
        self._pauses: dict[int, Pause] = {}
        self._refresher = Refresher(cluster, self._topics, self._refreshed)
        self._closed = False

    def assign(self, offsets: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int] | None = None) -> None:
        """Reads these partitions from these offsets; records of a partition whose offset has not changed are kept.

        Nothing is fetched from beyond a partition's end; the last batch may contain more.
        """
        before, self.positions = self.positions, {}
        for topic_partition, offset in offsets.items():
            known = before.get(topic_partition)
            if known is None or known.read_offset != offset:
                known = Position(topic_partition, offset, Backoff(self._cluster.random))
            known.end = None if ends is None else ends.get(topic_partition)
            self.positions[topic_partition] = known
        self.pump()

    def take(self) -> list[Fetched]:
        """Returns the oldest piece of every partition that has one, and fetches more."""
        taken: list[Fetched] = []
        for position in list(self.positions.values()):
            if position.pieces:
                taken.append(position.take())
                # Last in order now, so that a partition with many records cannot use up every fetch.
                self.positions[position.topic_partition] = self.positions.pop(position.topic_partition)
        self.pump()
        return taken

    def resume(self, position: Position, offset: int) -> None:
        """Continues a partition at another offset."""
        position.fetching = False
        position.offset = offset
        self.pump()

    def retry(self, position: Position) -> None:
        """Fetches the same offset again, after the back-off."""
        position.fetching = False
        self._rest(position)

    def close(self) -> None:
        self._closed = True
        self._refresher.close()
        for pause in self._pauses.values():
            pause.timer.cancel()
        for leader, session in self._sessions.items():
            if session.open:
                self._cluster.call(leader, session.closing_request())

    # --- Requests

    def _topics(self) -> list[str]:
        return list(dict.fromkeys(topic_partition.topic for topic_partition in self.positions))

    def pump(self) -> None:
        """Sends one Fetch to every leader without one in flight, for all of its partitions that have room for more."""
        if self._closed:
            return
        by_leader: dict[int, list[Position]] = {}
        for topic_partition, position in self.positions.items():
            if position.complete:
                continue
            leader = self._cluster.metadata.leader(*topic_partition)
            if leader is not None:
                by_leader.setdefault(leader, []).append(position)
            elif not self._busy(position):
                self._rest(position)
                self._refresher.request()
        for leader, positions in by_leader.items():
            if not self._fetching.get(leader):
                self._ask(leader, positions, self._config.prefetch_bytes // len(by_leader))

    def _busy(self, position: Position) -> bool:
        return position.fetching or position.halted or self._clock.monotonic_ms() < position.backoff_until_ms

    def _ask(self, leader: int, positions: list[Position], share_bytes: int) -> None:
        """Fetches from a leader as much as fits into its share of the budget."""
        buffered_bytes = sum(position.buffered_bytes for position in positions)
        room_bytes = share_bytes - buffered_bytes
        if buffered_bytes and room_bytes < self._config.partition_max_bytes:
            return
        most_bytes = share_bytes // len(positions)
        roomy = [position for position in positions if not position.pieces or position.buffered_bytes < most_bytes]
        ready = [position for position in roomy if not self._busy(position)]
        pause = self._pauses.get(leader)
        if not ready or (pause is not None and pause.positions.issuperset(ready)):
            return
        max_wait_ms = self._max_wait_ms(roomy) if len(roomy) == len(positions) else 0
        self._fetch(leader, ready, min(self._config.max_bytes, max(room_bytes, 1)), max_wait_ms)

    def _max_wait_ms(self, positions: list[Position]) -> int:
        """How long a fetch may wait at the leader of these partitions: until another of them can be fetched."""
        if any(position.fetching or position.halted for position in positions):
            return 0
        now_ms = self._clock.monotonic_ms()
        rests_ms = [position.backoff_until_ms - now_ms for position in positions if position.backoff_until_ms > now_ms]
        return min([self._config.max_wait_ms, *map(math.ceil, rests_ms)])

    def _fetch(self, leader: int, positions: list[Position], max_bytes: int, max_wait_ms: int) -> None:
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            # What one partition may send must be enough: otherwise a fetch that has no room for more waits for others.
            min_bytes=min(self._config.min_bytes, max_bytes, self._config.partition_max_bytes),
            max_bytes=max_bytes,
            isolation_level=int(self._config.read_committed),
        )
        for position in positions:
            position.fetching = True
        if leader in self._pauses:
            self._pauses.pop(leader).timer.cancel()
        session = self._sessions.setdefault(leader, FetchSession())
        session.fill(request, {position.topic_partition: self._wanted(position) for position in positions})
        self._fetching[leader] = True
        timeout_ms = self._cluster.request_timeout_ms + max_wait_ms
        self._cluster.call(leader, request, timeout_ms=timeout_ms).when_done(
            lambda outcome: self._answered(leader, session, positions, outcome, waited=max_wait_ms > 0)
        )

    def _pause(self, leader: int, positions: list[Position]) -> None:
        def end() -> None:
            del self._pauses[leader]
            self.pump()

        timer = self._clock.call_later(self._config.max_wait_ms, end)
        self._pauses[leader] = Pause(frozenset(positions), timer)

    def _wanted(self, position: Position) -> Wanted:
        metadata, topic_partition = self._cluster.metadata, position.topic_partition
        topic = metadata.topics.get(topic_partition.topic)
        topic_id = NO_ID if topic is None else topic.topic_id
        return Wanted(
            topic_id, position.offset, metadata.leader_epoch(*topic_partition), self._config.partition_max_bytes
        )

    # --- Responses

    def _answered(
        self,
        leader: int,
        session: FetchSession,
        positions: list[Position],
        outcome: Message | Exception | None,
        *,
        waited: bool,
    ) -> None:
        self._fetching[leader] = False
        for position in positions:
            position.fetching = False
        if isinstance(outcome, FetchResponse):
            if not session.answered(outcome):
                self._rest_all(positions)
            elif outcome.error_code:
                code = ErrorCode(outcome.error_code)
                self._owner.failed(ApiError(code, f"the broker refused the fetch ({code.name})"))
            else:
                if not waited and not _has_news(outcome):
                    self._pause(leader, positions)
                self._take_all({position.topic_partition: position for position in positions}, outcome)
        else:
            session.lost()
            if isinstance(outcome, UnsupportedError):
                self._owner.failed(outcome)
            self._rest_all(positions)
        self.pump()

    def _take_all(self, asked: dict[TopicPartition, Position], response: FetchResponse) -> None:
        kept = False
        for topic in response.responses:
            name = topic.topic or self._cluster.metadata.names_by_id.get(topic.topic_id, "")
            for answer in topic.partitions:
                position = asked.get(TopicPartition(name, answer.partition_index))
                if position is not None and self.positions.get(position.topic_partition) is position:
                    kept |= self._take(position, answer)
        if kept:
            # Not earlier: the caller may take records in this call, which sends the next fetch, and by then each
            # position must be behind what this response has brought.
            self._owner.arrived()

    def _take(self, position: Position, answer: PartitionData) -> bool:
        """Whether there are records to be taken."""
        code = ErrorCode(answer.error_code)
        if code == ErrorCode.NONE:
            position.backoff.reset()
            if answer.records is not None and len(answer.records):
                return self._keep(position, answer)
        elif position.pieces and not _passes(code):
            position.halted = True  # the caller gets the records before it first; then it is fetched again
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            position.fetching = True
            self._owner.out_of_range(position, answer.log_start_offset)
        elif not _passes(code):
            sentence = f"{position.topic_partition} cannot be read at offset {position.offset} ({code.name})"
            self._owner.failed(ApiError(code, sentence))
        else:
            named = answer.current_leader
            if not self._cluster.metadata.new_leader(*position.topic_partition, named.leader_id, named.leader_epoch):
                self._rest_all([position])
        return False

    def _keep(self, position: Position, answer: PartitionData) -> bool:
        records = answer.records
        assert isinstance(records, (bytes, bytearray, memoryview))
        batches = walk_batches(records)
        if not batches:
            self._owner.failed(
                ClientError(f"{position.topic_partition}: the broker sent half a batch at offset {position.offset}")
            )
            return False
        aborted = answer.aborted_transactions if self._config.read_committed else None
        position.keep(
            Fetched(
                position.topic_partition,
                position.offset,
                batches[-1].next_offset,
                answer.high_watermark,
                records,
                [AbortedTransaction(each.producer_id, each.first_offset) for each in aborted or []],
            )
        )
        return True

    def _rest_all(self, positions: list[Position]) -> None:
        for position in positions:
            self._rest(position)
        self._refresher.request()

    def _rest(self, position: Position) -> None:
        delay_ms = position.backoff.next_ms()
        position.backoff_until_ms = self._clock.monotonic_ms() + delay_ms
        self._clock.call_later(delay_ms + 1, self.pump)

    def _refreshed(self, outcome: Exception | None) -> None:
        if outcome is None:
            for topic_partition in self.positions:
                if topic_partition.topic not in self._cluster.metadata.topics:
                    gone = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic_partition.topic} was deleted")
                    self._owner.failed(gone)
                    return
        self.pump()


def _passes(code: ErrorCode) -> bool:
    return code.retriable and code != ErrorCode.CORRUPT_MESSAGE


def _has_news(response: FetchResponse) -> bool:
    return any(answer.error_code or answer.records for topic in response.responses for answer in topic.partitions)
