"""A member of a group with the classic protocol: joins, assigns if it is the leader, reads its partitions, commits.

It also leaves, changes its subscription, crashes and rejoins under another member id or as the same static member, and
is silent for longer than its session timeout. Then it is removed, and must get an error; no member is removed without a
reason. At the end of a run every group with live members must become stable.
"""

from collections.abc import Sequence

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_groups import DescribeGroupsRequest
from quire.protocol.messages.join_group import JoinGroupResponse
from simulator.clients.assignment import assign, subscribed
from simulator.clients.classic_requests import FENCED, OUT, ClassicRequests, Membership
from simulator.clients.client import Scene, SimClient
from simulator.clients.coordinator import GROUP, NOT_NOW, find_coordinator
from simulator.clients.list_offsets import EARLIEST, list_offset
from simulator.clients.offsets import commit_offsets, fetch_offsets
from simulator.clients.reading import Read, read
from simulator.clients.routes import group as coordinator_of
from simulator.clients.wire import Lost
from simulator.group_ledger import Owned, Standing, sorted_owned
from simulator.ledger import PartitionBook
from simulator.violation import Violation

HEARTBEATS_PER_SESSION = 5
COMMIT_REFUSALS = (*OUT, *FENCED, ErrorCode.REBALANCE_IN_PROGRESS)


class Out(Exception):  # noqa: N818
    """The membership has ended; to continue, the member must join again."""


class ClassicMember(SimClient):
    def __init__(
        self, scene: Scene, name: str, group: str, companions: Sequence[str], *, instance_id: str | None = None
    ) -> None:
        """`companions` are the clients that stay in the group to the end of the run; all others leave before."""
        super().__init__(scene, name)
        self._group_name = group
        self._companions = companions
        self._instance_id = instance_id
        self._session_timeout_ms = self.random.choice((400, 1500, 6000))
        self._rebalance_timeout_ms = self.random.choice((500, 1500, 3000))
        self._requests = ClassicRequests(self)
        self._member = self._new_membership()
        self._owned: Owned = ()
        self._positions: dict[PartitionBook, int] = {}
        self._heard_ms = 0.0
        """When the last request that the coordinator answered was sent."""
        self._surely_in = False
        """It got an assignment, and has sent heartbeats in time since then."""
        self._clock_changes = 0

    def _new_membership(self) -> Membership:
        topics = [topic.name for topic in self.scene.ledger.live_topics() if topic.stays]
        chosen = [name for name in topics if self.random.chance(0.7)] or topics
        return Membership(
            self._group_name,
            self.scene.group(self._group_name),
            self._instance_id,
            chosen,
            self.random.choice((("range", "sticky"), ("sticky", "range"))),
            self._session_timeout_ms,
            self._rebalance_timeout_ms,
        )

    async def run(self) -> None:
        self._member = self._new_membership()  # topics exist by now
        while not self._is_done():
            try:
                if self._member.is_over(self.scene):
                    self._member = self._new_membership()
                await self._join()
                await self._take_part()
            except Lost:
                await self.back_off()
            except Out:
                await self._stay_away()
        self.close()

    def _is_done(self) -> bool:
        if not self.scene.finishing:
            return False
        return self.name not in self._companions or self._member.group.came_to_rest

    # --- Joining

    async def _join(self) -> None:
        """Retries until it is in a generation and has its assignment."""
        member = self._member
        member.group.standing.pop(self.name, None)
        if self.random.chance(0.1):
            await find_coordinator(self, GROUP, member.group.name)
        while True:
            joined = await self._requests.join(member)
            if isinstance(joined, ErrorCode):
                await self._refused(joined)
                continue
            sent_ms, asked_tick = self.scene.clock.monotonic_ms(), self.scene.ledger.ticks.next()
            clock_changes = self.scene.clock_changes
            owned = await self._requests.sync(member, self._handed_in(joined))
            if not isinstance(owned, ErrorCode):
                break
            await self._refused(owned)
        self._heard_from(sent_ms)
        self._surely_in = clock_changes == self.scene.clock_changes
        self._owned = owned
        self._positions.clear()
        self._was_assigned(asked_tick)

    def _was_assigned(self, asked_tick: int) -> None:
        """It got its assignment, with a request of `asked_tick`."""

    async def _refused(self, error: ErrorCode) -> None:
        if error in OUT:
            self._member.member_id = ""
        if error in FENCED:
            raise Out
        if error not in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS):
            await self.back_off()

    def _handed_in(self, joined: JoinGroupResponse) -> dict[str, Owned]:
        """The assignment of all members, if this one is the leader and must assign."""
        if joined.leader != joined.member_id or joined.skip_assignment or not joined.members:
            return {}
        partitions = sorted_owned(
            (book.topic.name, book.index) for book in self.scene.ledger.live_partitions() if book.topic.stays
        )
        members = {each.member_id: subscribed(bytes(each.metadata)) for each in joined.members}
        return assign(self.random, members, partitions)

    # --- Membership

    async def _take_part(self) -> None:
        interval_ms = min(self._session_timeout_ms, self._rebalance_timeout_ms) / HEARTBEATS_PER_SESSION
        while not self._is_done():
            await self.scene.sleep(self.random.between(0.2, 1.0) * interval_ms)
            sent_ms, is_last_round = self.scene.clock.monotonic_ms(), self.scene.finishing
            error = await self._requests.heartbeat(self._member)
            if error in FENCED:
                raise Out
            if error in OUT:
                self._check_that_it_may_be_out(error)
                self._member.member_id = ""
                return
            if error is ErrorCode.REBALANCE_IN_PROGRESS:
                self._heard_from(sent_ms)
                return
            if error is not ErrorCode.NONE:
                await self.back_off()
                continue
            self._heard_from(sent_ms)
            if is_last_round:
                await self._look_at_group()
            elif not await self._do_something():
                return

    async def _look_at_group(self) -> None:
        """Checks whether all members are stable, and the coordinator agrees."""
        group = self._member.group
        group.standing[self.name] = Standing(self._member.generation, self._owned)
        if group.is_stable(self._companions):
            answer = await self.ask(DescribeGroupsRequest(groups=[group.name]), coordinator_of(group.name))
            found = answer.groups[0]
            error = self.expect(found.error_code, "DescribeGroups", *NOT_NOW, *self.excuses)
            is_complete = found.group_state == "Stable" and len(found.members) == len(self._companions)
            group.came_to_rest = group.came_to_rest or (error is ErrorCode.NONE and is_complete)

    async def _do_something(self) -> bool:
        """False if the member must join again."""
        dice = self.random.between(0.0, 1.0)
        if dice < 0.02:
            await self._requests.leave(self._member)
            raise Out
        if dice < 0.05:
            self._crash()
            raise Out
        if dice < 0.07:
            await self.scene.sleep(self._session_timeout_ms * self.random.between(0.5, 2.0))
        elif dice < 0.09:
            self._member.topics = self._new_membership().topics
            return False
        elif dice < 0.5:
            await self._read()
        elif dice < 0.8:
            return await self._commit()
        return True

    def _heard_from(self, sent_ms: float) -> None:
        """A late heartbeat may get no error while the coordinator is loading."""
        self._surely_in = self._surely_in and self._is_in_time()
        self._heard_ms = sent_ms
        self._clock_changes = self.scene.clock_changes

    def _check_that_it_may_be_out(self, error: ErrorCode) -> None:
        """A member that sent heartbeats in time is not removed, even by a restart: members are in the log.

        A static member may have replaced itself, with a request whose response was lost.
        """
        if self._surely_in and self._is_in_time() and self._instance_id is None:
            silent_ms = self.scene.clock.monotonic_ms() - self._heard_ms
            raise Violation(
                "a live member is not removed",
                f"{self._member.member_id} of {self._member.group} got {error.name} after {silent_ms:.0f} ms",
            )

    def _is_in_time(self) -> bool:
        silent_ms = self.scene.clock.monotonic_ms() - self._heard_ms
        in_time = silent_ms < min(self._session_timeout_ms, self._rebalance_timeout_ms)
        return in_time and self._clock_changes == self.scene.clock_changes

    def _crash(self) -> None:
        self.hang_up()

    async def _stay_away(self) -> None:
        """Stays away, perhaps for longer than its session; a static member rejoins under its instance id."""
        self._member.group.standing.pop(self.name, None)
        self._member = self._new_membership()
        await self.scene.sleep(self.random.between(0.0, 1.5) * self._session_timeout_ms)

    # --- Reading

    def _books(self) -> list[PartitionBook]:
        by_name = {(book.topic.name, book.index): book for book in self.scene.ledger.live_partitions()}
        return [by_name[each] for each in self._owned]

    async def _read(self) -> None:
        books = self._books()
        if not books:
            return
        book = self.random.choice(books)
        if book not in self._positions:
            found = await fetch_offsets(self, self._member.group.name, [book], stable=self.random.chance(0.5))
            if found is None:
                return
            self._positions[book] = max(found[book][0], 0)
        isolation_level = self.random.below(2)
        got = await read(self, book, self._positions[book], isolation_level=isolation_level, max_bytes=4000)
        if isinstance(got, Read):
            self._positions[book] = got.next_offset
        elif got is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._positions[book] = (await list_offset(self, book, EARLIEST)).offset

    async def _commit(self) -> bool:
        member = self._member
        if not self._positions:
            return True
        assert member.book is not None
        floor, was_replaced = member.group.assigned, member.book.replaced
        error = await commit_offsets(
            self,
            member.group.name,
            dict(self._positions),
            member_id=member.member_id,
            instance_id=member.instance_id,
            generation=member.generation,
            refusals=COMMIT_REFUSALS,
        )
        if error is ErrorCode.NONE and not member.is_over(self.scene):
            member.group.let_in(floor, member.generation, member.book, was_replaced, "OffsetCommit")
        return error not in COMMIT_REFUSALS
