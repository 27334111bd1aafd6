"""A classic member of a group whose other members use the consumer protocol (KIP-848).

The group changes its protocol, and back, while members join and leave.

Each partition has one owner at any time, whether a leader among the members or the coordinator assigns it.
"""

from collections.abc import Sequence

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from simulator.clients.classic_member import ClassicMember
from simulator.clients.classic_requests import Membership
from simulator.clients.client import Scene
from simulator.clients.coordinator import NOT_NOW
from simulator.clients.routes import group as coordinator_of
from simulator.consumer_group_ledger import ConsumerMemberBook, Standing
from simulator.group_ledger import GroupBook, MemberBook, Owned
from simulator.ledger import PartitionBook
from simulator.violation import Violation


class MixedGroupBook(GroupBook):
    """Checks nothing: owners are in the book of the consumer group, and each member has its own generation."""

    def told(self, floor: int, generation: int, member: MemberBook, owned: Owned) -> None:
        pass

    def let_in(self, floor: int, generation: int, member: MemberBook, was_replaced: bool, what: str) -> None:
        pass


class MixedMember(ClassicMember):
    def __init__(self, scene: Scene, name: str, group: str, companions: Sequence[str]) -> None:
        self._book = ConsumerMemberBook(name, self._is_heard)
        super().__init__(scene, name, group, companions)
        self._requests.gives_up_everything = self._gives_up_everything

    def _new_membership(self) -> Membership:
        membership = super()._new_membership()
        membership.group = self._classic_book()
        membership.tells_generation = True
        self._gives_up_everything()
        self._group = self.scene.consumer_group(self._group_name)
        self._book = ConsumerMemberBook(self.name, self._is_heard)
        self._group.joins(self._book)
        return membership

    def _classic_book(self) -> GroupBook:
        scene, name = self.scene, self.scene.group_name(self._group_name)
        if not isinstance(scene.group(self._group_name), MixedGroupBook):
            scene.groups[name] = MixedGroupBook(name, scene.ledger.counts, scene.ledger.ticks)
        return scene.groups[name]

    def _gives_up_everything(self) -> None:
        self._book.held.clear()

    def _is_heard(self) -> bool:
        return self._surely_in and self._is_in_time()

    def _is_done(self) -> bool:
        return self.scene.finishing and self._group.came_to_rest

    def _was_assigned(self, asked_tick: int) -> None:
        self._book.epoch = self._member.generation
        self._group.told_to_own(self._book, asked_tick, self._books())

    def _books(self) -> list[PartitionBook]:
        return [self._partition(name, index) for name, index in self._owned]

    def _partition(self, name: str, index: int) -> PartitionBook:
        """The coordinator may know a new partition before the client that created it."""
        topic = next((topic for topic in self.scene.ledger.live_topics() if topic.name == name), None)
        if topic is None or name not in self._member.topics or index >= topic.partitions_asked:
            raise Violation("no member gets what it did not subscribe to", f"{self._book} got {name}-{index}")
        topic.grow(index + 1)
        return topic.partitions[index]

    def _check_that_it_may_be_out(self, error: ErrorCode) -> None:
        """A group that becomes classic may start in a later generation than some of its members have."""
        if error is not ErrorCode.ILLEGAL_GENERATION:
            super()._check_that_it_may_be_out(error)

    async def _look_at_group(self) -> None:
        group = self._group
        group.standing[self.name] = Standing(
            self._member.generation, frozenset(self._books()), frozenset(self._member.topics)
        )
        if group.is_stable(self._companions, self.scene.ledger.live_partitions()):
            answer = await self.ask(ConsumerGroupDescribeRequest(group_ids=[group.name]), coordinator_of(group.name))
            found = answer.groups[0]
            error = self.expect(
                found.error_code, "ConsumerGroupDescribe", *NOT_NOW, *self.excuses, ErrorCode.GROUP_ID_NOT_FOUND
            )
            is_complete = found.group_state == "Stable" and len(found.members) == len(self._companions)
            group.came_to_rest = group.came_to_rest or (error is ErrorCode.NONE and is_complete)
