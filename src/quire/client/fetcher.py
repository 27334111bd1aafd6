"""Reads ahead: keeps a Fetch waiting at the leader of every partition that is read, within a budget of bytes.

What comes is kept in pieces until `take` hands it over, and the next is asked for while the caller still reads. Leaders
share the budget, and partitions the share of their leader: a partition with a lot to say takes no room from one that
has none yet. What is kept never exceeds the budget by more than a batch a leader. Leaders that move are followed, and
refusals that pass are waited out; what reading cannot go on after is for the owner, `Consumer`, to judge.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

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


@dataclass(slots=True, frozen=True)
class FetchConfig:
    """Kafka's settings of the same names, and how much may be kept that nobody has taken yet."""

    read_committed: bool = False
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 16 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024
    prefetch_bytes: int = 16 * 1024 * 1024


class Position:
    """How far one partition has been read, and what of it is here."""

    __slots__ = ("backoff", "buffered_bytes", "end", "fetching", "halted", "offset", "pieces", "place", "rest_until_ms")

    def __init__(self, place: TopicPartition, offset: int, backoff: Backoff) -> None:
        self.place = place
        self.offset = offset  # to be fetched next
        self.end: int | None = None  # not to be fetched any more; None: there is always more
        self.pieces: deque[Fetched] = deque()
        self.buffered_bytes = 0
        self.fetching = False
        self.halted = False  # trouble lies ahead, and is for later
        self.rest_until_ms = 0.0
        self.backoff = backoff

    @property
    def read_offset(self) -> int:
        """To be handed over next."""
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


class Owner(Protocol):
    def arrived(self) -> None:
        """There is something to take."""

    def failed(self, error: Exception) -> None:
        """Reading cannot go on."""

    def out_of_range(self, position: Position, log_start_offset: int) -> None:
        """The position's offset is not there; it is not read until `resume`."""


class Fetcher:
    def __init__(self, cluster: Cluster, config: FetchConfig, owner: Owner) -> None:
        self.positions: dict[TopicPartition, Position] = {}
        self._cluster = cluster
        self._clock = cluster.clock
        self._config = config
        self._owner = owner
        self._sessions: dict[int, FetchSession] = {}
        self._fetching: dict[int, bool] = {}
        self._refresher = Refresher(cluster, self._topics, self._refreshed)
        self._closed = False

    def assign(self, offsets: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int] | None = None) -> None:
        """Reads these partitions from these offsets; what is here already of one that goes on is not thrown away.

        Of a partition that has an end nothing is asked for that lies behind it; what comes may go beyond.
        """
        before, self.positions = self.positions, {}
        for place, offset in offsets.items():
            known = before.get(place)
            if known is None or known.read_offset != offset:
                known = Position(place, offset, Backoff(self._cluster.random))
            known.end = None if ends is None else ends.get(place)
            self.positions[place] = known
        self.pump()

    def take(self) -> list[Fetched]:
        """The oldest piece of every partition that has one, and asks for more."""
        taken: list[Fetched] = []
        for position in list(self.positions.values()):
            if position.pieces:
                taken.append(position.take())
                # Behind the others now, so that a full partition cannot starve them of room in a fetch.
                self.positions[position.place] = self.positions.pop(position.place)
        self.pump()
        return taken

    def resume(self, position: Position, offset: int) -> None:
        """Reads a partition on from another offset."""
        position.fetching = False
        position.offset = offset
        self.pump()

    def retry(self, position: Position) -> None:
        """Asks for the same again, after a moment."""
        position.fetching = False
        self._rest(position)

    def close(self) -> None:
        self._closed = True
        self._refresher.close()
        for leader, session in self._sessions.items():
            if session.open:
                self._cluster.call(leader, session.goodbye())

    # -- asking -----------------------------------------------------------------------------------------------------

    def _topics(self) -> list[str]:
        return list(dict.fromkeys(place.topic for place in self.positions))

    def pump(self) -> None:
        """One Fetch to every leader that has none, for all of its partitions that have room for more."""
        if self._closed:
            return
        by_leader: dict[int, list[Position]] = {}
        for place, position in self.positions.items():
            if position.complete:
                continue
            leader = self._cluster.metadata.leader(*place)
            if leader is not None:
                by_leader.setdefault(leader, []).append(position)
            elif not self._busy(position):
                self._rest(position)
                self._refresher.request()
        for leader, positions in by_leader.items():
            if not self._fetching.get(leader):
                self._ask(leader, positions, self._config.prefetch_bytes // len(by_leader))

    def _busy(self, position: Position) -> bool:
        return position.fetching or position.halted or self._clock.monotonic_ms() < position.rest_until_ms

    def _ask(self, leader: int, positions: list[Position], share_bytes: int) -> None:
        """Asks a leader for what fits into its share of the budget."""
        buffered_bytes = sum(position.buffered_bytes for position in positions)
        room_bytes = share_bytes - buffered_bytes
        if buffered_bytes and room_bytes < self._config.partition_max_bytes:
            return
        most_bytes = share_bytes // len(positions)
        ready = [
            position
            for position in positions
            if not self._busy(position) and (not position.pieces or position.buffered_bytes < most_bytes)
        ]
        if ready:
            self._fetch(leader, ready, min(self._config.max_bytes, max(room_bytes, 1)))

    def _fetch(self, leader: int, positions: list[Position], max_bytes: int) -> None:
        config = self._config
        request = FetchRequest(
            max_wait_ms=config.max_wait_ms,
            min_bytes=config.min_bytes,
            max_bytes=max_bytes,
            isolation_level=int(config.read_committed),
        )
        for position in positions:
            position.fetching = True
        session = self._sessions.setdefault(leader, FetchSession())
        session.fill(request, {position.place: self._wanted(position) for position in positions})
        self._fetching[leader] = True
        timeout_ms = self._cluster.request_timeout_ms + config.max_wait_ms
        self._cluster.call(leader, request, timeout_ms=timeout_ms).when_done(
            lambda outcome: self._answered(leader, session, positions, outcome)
        )

    def _wanted(self, position: Position) -> Wanted:
        metadata, place = self._cluster.metadata, position.place
        topic = metadata.topics.get(place.topic)
        topic_id = NO_ID if topic is None else topic.topic_id
        return Wanted(topic_id, position.offset, metadata.leader_epoch(*place), self._config.partition_max_bytes)

    # -- answers ----------------------------------------------------------------------------------------------------

    def _answered(
        self, leader: int, session: FetchSession, positions: list[Position], outcome: Message | Exception | None
    ) -> None:
        self._fetching[leader] = False
        for position in positions:
            position.fetching = False
        if isinstance(outcome, FetchResponse):
            if not session.answered(outcome):
                self._rest_all(positions)
            elif outcome.error_code:
                code = ErrorCode(outcome.error_code)
                self._owner.failed(ApiError(code, f"the broker refused to be read from ({code.name})"))
            else:
                self._take_all({position.place: position for position in positions}, outcome)
        else:
            session.lost()
            if isinstance(outcome, UnsupportedError):
                self._owner.failed(outcome)
            self._rest_all(positions)
        self.pump()

    def _take_all(self, asked: dict[TopicPartition, Position], response: FetchResponse) -> None:
        for topic in response.responses:
            name = topic.topic or self._cluster.metadata.names_by_id.get(topic.topic_id, "")
            for answer in topic.partitions:
                position = asked.get(TopicPartition(name, answer.partition_index))
                if position is not None and self.positions.get(position.place) is position:
                    self._take(position, answer)

    def _take(self, position: Position, answer: PartitionData) -> None:
        code = ErrorCode(answer.error_code)
        if code == ErrorCode.NONE:
            position.backoff.reset()
            if answer.records is not None and len(answer.records):
                self._keep(position, answer)
        elif position.pieces and not _passes(code):
            position.halted = True  # what was read before comes first; then this is asked for again
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            position.fetching = True
            self._owner.out_of_range(position, answer.log_start_offset)
        elif not _passes(code):
            sentence = f"{position.place} cannot be read at offset {position.offset} ({code.name})"
            self._owner.failed(ApiError(code, sentence))
        else:
            named = answer.current_leader
            if not self._cluster.metadata.new_leader(*position.place, named.leader_id, named.leader_epoch):
                self._rest_all([position])

    def _keep(self, position: Position, answer: PartitionData) -> None:
        records = answer.records
        assert isinstance(records, (bytes, bytearray, memoryview))
        batches = walk_batches(records)
        if not batches:
            self._owner.failed(
                ClientError(f"{position.place}: the broker sent half a batch at offset {position.offset}")
            )
            return
        aborted = answer.aborted_transactions if self._config.read_committed else None
        position.keep(
            Fetched(
                position.place,
                position.offset,
                batches[-1].next_offset,
                answer.high_watermark,
                records,
                [AbortedTransaction(each.producer_id, each.first_offset) for each in aborted or []],
            )
        )
        self._owner.arrived()

    def _rest_all(self, positions: list[Position]) -> None:
        for position in positions:
            self._rest(position)
        self._refresher.request()

    def _rest(self, position: Position) -> None:
        delay_ms = position.backoff.next_ms()
        position.rest_until_ms = self._clock.monotonic_ms() + delay_ms
        self._clock.call_later(delay_ms + 1, self.pump)

    def _refreshed(self, outcome: Exception | None) -> None:
        if outcome is None:
            for place in self.positions:
                if place.topic not in self._cluster.metadata.topics:
                    gone = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {place.topic} was deleted")
                    self._owner.failed(gone)
                    return
        self.pump()


def _passes(code: ErrorCode) -> bool:
    return code.retriable and code != ErrorCode.CORRUPT_MESSAGE
