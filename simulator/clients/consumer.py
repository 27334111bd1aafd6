"""A consumer: follows partitions from their start, with or without fetch sessions, and checks every batch it gets.

In a cluster each fetch goes to one node, for the partitions that it leads, and each node has its own session.

Some consumers send the leader epoch of their last record (KIP-320, KIP-595). After a power loss they must learn where
their history ends; the others can only notice that their position is out of range, if it is.
"""

from dataclasses import dataclass

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from quire.protocol.uuids import ZERO
from simulator.checks.superseded import is_compacted
from simulator.clients.client import Scene, SimClient
from simulator.clients.list_offsets import EARLIEST, list_offset
from simulator.clients.produce import GONE
from simulator.clients.reading import READ_COMMITTED
from simulator.clients.wire import Lost, Wire
from simulator.ledger import Floor, PartitionBook
from simulator.violation import Violation

FIRST_VERSION_WITH_SESSIONS = 7
FIRST_VERSION_WITH_TOPIC_IDS = 13
NO_SESSION = 0
SESSION_ERRORS = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


@dataclass(frozen=True, slots=True)
class LastRead:
    """The record before a consumer's position."""

    leader_epoch: int
    value: bytes
    era: int


@dataclass(slots=True)
class Session:
    """A fetch session as the consumer sees it (KIP-227)."""

    session_id: int = NO_SESSION
    epoch: int = 0
    followed: dict[PartitionBook, tuple[int, int]] | None = None
    """The partitions in the session with offset and last epoch; None before the first request."""
    wire: Wire | None = None


class Consumer(SimClient):
    def __init__(self, scene: Scene, name: str, *, sessions: bool, isolation_level: int | None = None) -> None:
        """`isolation_level` is random for each fetch unless it is given."""
        super().__init__(scene, name)
        self._isolation_level = isolation_level
        self._with_sessions = sessions
        self._by_id = self.random.chance(0.7)
        """Whether it fetches by topic id; by name it only follows topics that stay."""
        self._with_epochs = self._by_id and self.random.chance(0.5)
        self._last_read: dict[PartitionBook, LastRead] = {}
        self._sessions: dict[str, Session] = {}
        """By node."""
        self._without_place: list[PartitionBook] = []
        self.positions: dict[PartitionBook, int] = {}

    async def run(self) -> None:
        """Continues until it has read everything that is known, and no more is coming."""
        while not (self.scene.finishing and self._is_at_the_end()):
            self._choose_partitions()
            try:
                await self._find_starts()
                await self._fetch()
            except Lost:
                self._sessions.clear()
                await self.back_off()
            longest_ms = 400.0 if self.random.chance(0.1) and not self.scene.finishing else 30.0
            await self.scene.sleep(self.random.between(0.0, longest_ms))
        self.close()

    def _is_at_the_end(self) -> bool:
        committed_only = self._isolation_level == READ_COMMITTED
        return all(
            self.positions.get(book, 0) >= (book.stable_offset if committed_only else book.end_offset)
            for book in self.scene.ledger.live_partitions()
            if book in self.positions or book.topic.stays
        )

    def _choose_partitions(self) -> None:
        for book in list(self.positions):
            if book.topic.deletion_asked:
                del self.positions[book]
                self._last_read.pop(book, None)
        for book in self.scene.ledger.live_partitions():
            if book not in self.positions and (book.topic.stays or (self._by_id and self.random.chance(0.5))):
                self.positions[book] = 0

    async def _find_starts(self) -> None:
        """Starts again at the log start if a position was out of range."""
        while self._without_place:
            book = self._without_place[-1]
            # In topics that may be deleted, no client deletes records: they start at 0.
            self.positions[book] = (await list_offset(self, book, EARLIEST)).offset if book.topic.stays else 0
            self._last_read.pop(book, None)
            self._without_place.pop()

    # --- One fetch

    async def _fetch(self) -> None:
        if not self.positions:
            return
        leaders = await self.by_leader(list(self.positions))
        node = self._choose_node(leaders)
        wire = await self.connected(node)
        version = self._version()
        books = [book for book in leaders[node] if book in self.positions]
        floors = {book: (self.positions[book], book.floor(wire.node)) for book in books}
        era = wire.era
        request = FetchRequest(
            max_wait_ms=self.random.choice((0, 50, 500)),
            min_bytes=self.random.choice((0, 1, 1, 5000)),
            max_bytes=self._limit(1000, 20_000),
            isolation_level=self.random.below(2) if self._isolation_level is None else self._isolation_level,
        )
        if self._with_sessions:
            self._continue_session(self._sessions.setdefault(node, Session()), request, wire, books)
        else:
            request.topics = self._topics(books)
        answer = await self.answer(self.send(wire, request, version))
        if self._with_sessions and not self._session_continues(node, answer):
            return
        failed = [
            self._take(era, floors, found, partition, committed_only=request.isolation_level == READ_COMMITTED)
            for found in answer.responses
            for partition in found.partitions
        ]
        if any(failed):
            await self.back_off()

    def _limit(self, small: int, medium: int) -> int:
        """How many bytes it wants: up to `small`, `medium` or many. At the end many, because it has seen the others."""
        return (
            self.random.choice((1 + self.random.below(small), medium, 1 << 20)) if not self.scene.finishing else 1 << 20
        )

    def _choose_node(self, leaders: dict[str, list[PartitionBook]]) -> str:
        """Any; at the end one that has more, because others would only answer after the longest wait."""
        if len(leaders) == 1:
            return next(iter(leaders))
        behind = [
            node for node, books in leaders.items() if any(self.positions[book] < book.end_offset for book in books)
        ]
        return self.random.choice(behind if behind and self.scene.finishing else list(leaders))

    def _version(self) -> int:
        if self._by_id:
            return self.version(FetchRequest, FIRST_VERSION_WITH_TOPIC_IDS)
        oldest = FIRST_VERSION_WITH_SESSIONS if self._with_sessions else 0
        return self.version(FetchRequest, oldest, FIRST_VERSION_WITH_TOPIC_IDS - 1)

    def _topics(self, books: list[PartitionBook]) -> list[FetchTopic]:
        topics: dict[bytes, FetchTopic] = {}
        # In another order each time: a size limit must not starve the last ones.
        for book in sorted(books, key=lambda _: self.random.below(1 << 30)):
            topic = book.topic
            wanted = topics.setdefault(topic.topic_id, FetchTopic(topic=topic.name, topic_id=topic.topic_id))
            wanted.partitions.append(
                FetchPartition(
                    partition=book.index,
                    fetch_offset=self.positions[book],
                    last_fetched_epoch=self._last_epoch(book),
                    partition_max_bytes=self._limit(600, 4000),
                )
            )
        return list(topics.values())

    def _take(
        self,
        era: int,
        floors: dict[PartitionBook, tuple[int, Floor]],
        topic: FetchableTopicResponse,
        answer: PartitionData,
        *,
        committed_only: bool,
    ) -> bool:
        """Checks one partition's answer; True if it was an error."""
        book = next(
            each
            for each in floors
            if each.index == answer.partition_index
            and (each.topic.topic_id == topic.topic_id if topic.topic_id != ZERO else each.topic.name == topic.topic)
        )
        wanted, floor = floors[book]
        gone = GONE if book.topic.deletion_asked else ()
        error = self.expect(answer.error_code, f"reading {book}", ErrorCode.OFFSET_OUT_OF_RANGE, *gone, *self.excuses)
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self.scene.checker.bounds.out_of_range(book, era, floor, wanted)
            # Past the end after a power loss, or before the start because records were deleted.
            self._without_place.append(book)
            return True
        if error is not ErrorCode.NONE:
            return True
        if answer.diverging_epoch.epoch >= 0:
            self._go_back(book, floor, wanted, answer.diverging_epoch)
            return False
        found = self.scene.checker.fetches.check(book, era, floor, wanted, answer, committed_only=committed_only)
        if found is None:
            # A follower may have answered, which serves readers too. After a loss only the leader's answers count.
            self.routes.forget()
        if found is not None and found.next_offset > wanted and book in self.positions:
            self._check_history(book, wanted)
            self.positions[book] = found.next_offset
            # Compaction may have left an empty batch, whose epoch still counts.
            before = book.known.get(found.next_offset - 1)
            self._last_read[book] = LastRead(found.last_epoch, before.value if before is not None else b"", era)
        return False

    # --- History

    def _last_epoch(self, book: PartitionBook) -> int:
        last = self._last_read.get(book)
        return last.leader_epoch if self._with_epochs and last is not None else -1

    def _go_back(self, book: PartitionBook, floor: Floor, wanted: int, end: EpochEndOffset) -> None:
        """The node reports that its history differs from ours: that is allowed only after a loss of records.

        A leader that was deposed does not know a later epoch; a reader that retries finds the new leader.
        """
        if not book.leadership.is_current(floor.epoch):
            return
        last = self._last_read.pop(book, None)
        if last is not None and last.era >= book.era:
            raise Violation(
                "history does not change", f"{book} differs from {self.name}'s at {end.end_offset}, before {wanted}"
            )
        self.positions[book] = min(wanted, end.end_offset)

    def _check_history(self, book: PartitionBook, wanted: int) -> None:
        """The node returned records from our position on: the record before it must still be the one we read."""
        if is_compacted(book.topic):
            return
        last, before = self._last_read.get(book), book.known.get(wanted - 1)
        if self._with_epochs and last is not None and before is not None and before.value != last.value:
            raise Violation(
                "a reader that sends its last epoch learns of lost records",
                f"{self.name} continued in {book} at {wanted}, although the record before has changed",
            )

    # --- Sessions

    def _continue_session(
        self, session: Session, request: FetchRequest, wire: Wire, books: list[PartitionBook]
    ) -> None:
        """Sends only changes if there is a session; otherwise everything, which opens one."""
        request.session_id, request.session_epoch = session.session_id, session.epoch
        # A reader that went back may keep its offset; its epoch then says that it has.
        follows = {book: (self.positions[book], self._last_epoch(book)) for book in books}
        if session.followed is None:
            request.topics = self._topics(books)
        else:
            changed = [book for book in books if session.followed.get(book) != follows[book]]
            request.topics = self._topics(changed)
            request.forgotten_topics_data = [
                ForgottenTopic(topic=book.topic.name, topic_id=book.topic.topic_id, partitions=[book.index])
                for book in session.followed
                if book not in books
            ]
        session.followed = follows
        session.wire = wire

    def _session_continues(self, node: str, answer: FetchResponse) -> bool:
        session = self._sessions[node]
        # After a frame that was sent twice or lost, or after a restart, the session epochs of both sides differ.
        error = self.expect(answer.error_code, "a fetch session", *SESSION_ERRORS)
        if error is not ErrorCode.NONE or answer.session_id == NO_SESSION:
            self._sessions[node] = Session()
            return error is ErrorCode.NONE
        session.session_id = answer.session_id
        session.epoch += 1
        return True
