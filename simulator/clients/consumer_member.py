"""A member of a group with the consumer protocol (KIP-848): it sends heartbeats and gets its assignment from them.

It subscribes by names or by a regular expression, changes its subscription, revokes partitions at once or as late as
allowed, reads and commits. It also leaves, crashes and rejoins under another member id or as the same static member,
and is silent for longer than its session timeout.
"""

from collections.abc import Sequence
from typing import NamedTuple

from quire.protocol import uuids
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from simulator.clients.client import Scene, SimClient
from simulator.clients.coordinator import NOT_NOW
from simulator.clients.offsets import commit_offsets, fetch_offsets
from simulator.clients.reading import Read, read
from simulator.clients.routes import Coordinator
from simulator.clients.routes import group as coordinator_of
from simulator.clients.wire import Lost
from simulator.consumer_group_ledger import ConsumerMemberBook, Standing
from simulator.ledger import PartitionBook
from simulator.violation import Violation

JOINING, LEAVING, LEAVING_STATICALLY = 0, -1, -2
FIRST_VERSION_WITH_REGEX = 1
FIRST_COMMIT_WITH_EPOCHS = 9
REGEX = "topic-[0-9]+"
OUT = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)
NOT_YET = (ErrorCode.UNRELEASED_INSTANCE_ID,)
COMMIT_REFUSALS = (*OUT, ErrorCode.STALE_MEMBER_EPOCH)


class _Moment(NamedTuple):
    ms: float
    clock_changes: int
    """If it is another number now, nodes measure another time since then."""


class Out(Exception):  # noqa: N818
    """The membership has ended."""


class ConsumerMember(SimClient):
    def __init__(
        self,
        scene: Scene,
        name: str,
        group: str,
        companions: Sequence[str],
        session_timeout_ms: int,
        *,
        instance_id: str | None = None,
    ) -> None:
        """`companions` are the clients that stay in the group; `session_timeout_ms` is the node's setting."""
        super().__init__(scene, name)
        self._group_name = group
        self._companions = companions
        self._instance_id = instance_id
        self._session_timeout_ms = session_timeout_ms
        self._rebalance_timeout_ms = self.random.choice((500, 1500, 3000))
        self._rejoin()

    def _rejoin(self, member_id: str | None = None) -> None:
        self._group = self.scene.consumer_group(self._group_name)
        self._member = ConsumerMemberBook(member_id or uuids.to_text(self.random.uuid()), self._is_heard)
        self._group.joins(self._member)
        self._has_joined = False
        self._heard_at = _Moment(-1e9, self.scene.clock_changes)
        self._in_doubt = True
        """A request may have been lost: the next heartbeat has all fields."""
        self._in_doubt_since: _Moment | None = None
        """Since when the coordinator may have sent it assignments that it did not receive."""
        self._told: frozenset[PartitionBook] = frozenset()
        self._reported: frozenset[PartitionBook] | None = None
        self._releases: dict[PartitionBook, float] = {}
        """Partitions that it must revoke, and when it does."""
        self._releasing_since: _Moment | None = None
        self._interval_ms = 100.0
        self._positions: dict[PartitionBook, int] = {}
        self._subscribe()

    def _subscribe(self) -> None:
        self._by_regex = self.random.chance(0.3)
        topics = [topic.name for topic in self.scene.ledger.live_topics() if topic.stays]
        if self._by_regex:
            self._topics = [name for name in topics if name.startswith("topic-")]
        else:
            self._topics = [name for name in topics if self.random.chance(0.7)] or topics

    async def run(self) -> None:
        self._subscribe()  # topics exist by now
        while not self._is_done():
            try:
                await self._take_part()
            except Lost:
                self._in_doubt = True
                await self.back_off()
            except Out:
                await self._stay_away()
        self.close()

    def _is_done(self) -> bool:
        return self.scene.finishing and self._group.came_to_rest

    def _is_heard(self) -> bool:
        """Whether the coordinator must still know this member: it sent heartbeats and revoked partitions in time."""
        is_revoking_in_time = self._releasing_since is None or self._is_surely_less(
            self._releasing_since, self._rebalance_timeout_ms
        )
        return is_revoking_in_time and self._is_surely_less(self._heard_at, self._session_timeout_ms)

    def _now(self) -> _Moment:
        return _Moment(self.scene.clock.monotonic_ms(), self.scene.clock_changes)

    def _is_surely_less(self, since: _Moment, duration_ms: float) -> bool:
        """Whether less than this time has passed since then, by every node's clock."""
        now = self._now()
        return now.ms - since.ms < duration_ms and now.clock_changes == since.clock_changes

    @property
    def _coordinator(self) -> Coordinator:
        return coordinator_of(self._group.name)

    # --- Heartbeats

    async def _take_part(self) -> None:
        while not self._is_done():
            await self._heartbeat()
            if self.scene.finishing:
                await self._look_at_group()
            elif self._has_joined:
                await self._do_something()
            await self.scene.sleep(self.random.between(0.3, 1.0) * self._interval_ms)

    async def _heartbeat(self) -> None:
        await self._connected()
        self._release()
        joins = not self._has_joined
        owned = frozenset(self._member.held)
        full = self._in_doubt or joins
        floor, asked_tick = self._member.epoch, self.scene.ledger.ticks.next()
        sent = self._now()
        request = self._request(JOINING if joins else self._member.epoch, full=full)
        if full or owned != self._reported:
            request.topic_partitions = [] if joins else _by_topic(sorted(owned, key=repr))
        try:
            answer = await self.ask(request, self._coordinator, at_least=FIRST_VERSION_WITH_REGEX)
        except Lost:
            self._doubt(sent)
            raise
        error = self.expect(answer.error_code, "ConsumerGroupHeartbeat", *NOT_NOW, *self.excuses, *OUT, *NOT_YET)
        if error in OUT:
            self._check_that_it_may_be_out(error)
            if error is not ErrorCode.FENCED_MEMBER_EPOCH or self.random.chance(0.5):
                raise Out
            self._group.leaves(self._member)
            self._rejoin(self._member.member_id)
            return
        if error is not ErrorCode.NONE:
            if error not in NOT_YET:
                self._doubt(sent)  # it may or may not be in the log
            await self.back_off()
            return
        told_since = sent if self._in_doubt_since is None else self._in_doubt_since
        self._in_doubt, self._in_doubt_since = False, None
        if self.sent_twice:
            self._doubt(sent)
        self._reported = owned
        self._heard_at = sent
        self._has_joined = True
        if not self._releases:
            self._releasing_since = None
        self._take(answer, floor, asked_tick, told_since)
        if answer.assignment is not None:
            is_late = answer.member_epoch != request.member_epoch
            self._group.told_topics(self._member, self._told, self._topics, owned if is_late else None)

    def _doubt(self, since: _Moment) -> None:
        self._in_doubt = True
        if self._in_doubt_since is None:
            self._in_doubt_since = since

    def _request(self, epoch: int, *, full: bool) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group.name,
            member_id=self._member.member_id,
            member_epoch=epoch,
            instance_id=self._instance_id,
        )
        if full:
            request.rebalance_timeout_ms = self._rebalance_timeout_ms
            request.subscribed_topic_names = [] if self._by_regex else self._topics
            request.subscribed_topic_regex = REGEX if self._by_regex else ""
        return request

    def _take(self, answer: ConsumerGroupHeartbeatResponse, floor: int, asked_tick: int, told_since: _Moment) -> None:
        self._group.told_epoch(self._member, floor, answer.member_epoch)
        self._interval_ms = float(answer.heartbeat_interval_ms)
        if answer.assignment is None:
            return
        told = self._told = frozenset(
            self._partition(bytes(topic.topic_id), index)
            for topic in answer.assignment.topic_partitions
            for index in topic.partitions
        )
        now_ms = self.scene.clock.monotonic_ms()
        for book in [book for book in self._member.held if book not in told and book not in self._releases]:
            late = self.random.between(0.0, 1.2) if self.random.chance(0.2) else 0.0
            self._releases[book] = now_ms + late * self._rebalance_timeout_ms
            if self._releasing_since is None:
                self._releasing_since = told_since
        for book in told:
            self._releases.pop(book, None)
        gained = [
            book for book in self.scene.ledger.live_partitions() if book in told and book not in self._member.held
        ]
        self._group.told_to_own(self._member, asked_tick, gained)

    def _partition(self, topic_id: bytes, index: int) -> PartitionBook:
        """The coordinator may know a new partition before the client that created it."""
        topic = self.scene.ledger.topics.get(topic_id)
        if topic is None or index >= topic.partitions_asked:
            raise Violation("no member gets what does not exist", f"{self._member} got {topic}-{index}")
        topic.grow(index + 1)
        return topic.partitions[index]

    def _release(self) -> None:
        """Revokes the partitions that are due, before the next request."""
        now_ms = self.scene.clock.monotonic_ms()
        for book in [book for book, due_ms in self._releases.items() if due_ms <= now_ms]:
            del self._releases[book]
            self._member.held.pop(book, None)
            self._positions.pop(book, None)

    async def _connected(self) -> None:
        await self.connected(self._coordinator)
        if self.scene.consumer_group(self._group_name) is not self._group:
            self._group.leaves(self._member)
            self._rejoin()
            raise Lost("a power loss may have lost the coordinator's state")

    def _check_that_it_may_be_out(self, error: ErrorCode) -> None:
        """A member that sends heartbeats in time, and got every answer, is not removed."""
        if self._has_joined and self._is_heard() and not self._in_doubt and self._instance_id is None:
            raise Violation("a live member is not removed", f"{self._member} of {self._group} got {error.name}")

    # --- Other actions

    async def _do_something(self) -> None:
        dice = self.random.between(0.0, 1.0)
        if dice < 0.02:
            await self._leave()
            raise Out
        if dice < 0.05:
            self.hang_up()
            raise Out
        if dice < 0.07:
            await self.scene.sleep(self._session_timeout_ms * self.random.between(0.5, 1.5))
        elif dice < 0.1:
            self._subscribe()
            self._in_doubt = True
        elif dice < 0.5:
            await self._read()
        elif dice < 0.8:
            await self._commit()

    async def _leave(self) -> None:
        await self._connected()
        how = LEAVING if self._instance_id is None or self.random.chance(0.5) else LEAVING_STATICALLY
        self._group.leaves(self._member)
        answer = await self.ask(self._request(how, full=False), self._coordinator, at_least=FIRST_VERSION_WITH_REGEX)
        self.expect(answer.error_code, "ConsumerGroupHeartbeat", *NOT_NOW, *self.excuses, *OUT)

    async def _stay_away(self) -> None:
        self._group.leaves(self._member)
        self._group.standing.pop(self.name, None)
        self._rejoin()
        await self.scene.sleep(self.random.between(0.0, 1.5) * self._session_timeout_ms)

    async def _read(self) -> None:
        books = sorted(self._member.held, key=repr)
        if not books:
            return
        book = self.random.choice(books)
        if book not in self._positions:
            found = await fetch_offsets(self, self._group.name, [book], stable=self.random.chance(0.5))
            if found is None:
                return
            self._positions[book] = max(found[book][0], 0)
        got = await read(self, book, self._positions[book], isolation_level=self.random.below(2), max_bytes=4000)
        if book in self._member.held:
            self._positions[book] = got.next_offset if isinstance(got, Read) else book.start_offset

    async def _commit(self) -> None:
        if self._positions:
            await commit_offsets(
                self,
                self._group.name,
                dict(self._positions),
                member_id=self._member.member_id,
                instance_id=self._instance_id,
                generation=self._member.epoch,
                at_least=FIRST_COMMIT_WITH_EPOCHS,
                refusals=COMMIT_REFUSALS,
            )

    # --- The end

    async def _look_at_group(self) -> None:
        """Checks whether all members are stable, and the coordinator agrees."""
        group, member = self._group, self._member
        group.standing.pop(self.name, None)
        if not self._has_joined or self._releases or self._in_doubt:
            return
        owned = frozenset(member.held)
        if owned != self._told or owned != self._reported:
            return
        group.standing[self.name] = Standing(member.epoch, owned, frozenset(self._topics))
        if group.is_stable(self._companions, self.scene.ledger.live_partitions()):
            answer = await self.ask(ConsumerGroupDescribeRequest(group_ids=[group.name]), self._coordinator)
            found = answer.groups[0]
            error = self.expect(found.error_code, "ConsumerGroupDescribe", *NOT_NOW, *self.excuses)
            is_complete = found.group_state == "Stable" and len(found.members) == len(self._companions)
            group.came_to_rest = group.came_to_rest or (error is ErrorCode.NONE and is_complete)


def _by_topic(books: Sequence[PartitionBook]) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    topics: dict[bytes, list[int]] = {}
    for book in books:
        topics.setdefault(book.topic.topic_id, []).append(book.index)
    return [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=indexes)
        for topic_id, indexes in topics.items()
    ]
