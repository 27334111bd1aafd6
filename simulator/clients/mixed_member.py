"""A classic member of a group that others are in by the consumer protocol (KIP-848).

The group changes its protocol, and back, while its members come and go.

Whoever assigns partitions at the time, a leader among the members or the coordinator: at any time each has one owner.
"""

from collections.abc import Sequence

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from simulator.clients.classic_member import ClassicMember
from simulator.clients.classic_requests import Membership
from simulator.clients.client import Scene
from simulator.clients.coordinator import NOT_NOW
from simulator.consumer_group_ledger import ConsumerMemberBook, Standing
from simulator.group_ledger import GroupBook, MemberBook, Owned
from simulator.ledger import PartitionBook
from simulator.violation import Violation


class MixedGroupBook(GroupBook):
    """Believes everything: who owns what is in the book of the consumer group, generations are each member's own."""

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
        """The coordinator may know of a new one before who asked for it."""
        topic = next((topic for topic in self.scene.ledger.live_topics() if topic.name == name), None)
        if topic is None or name not in self._member.topics or index >= topic.partitions_asked:
            raise Violation("nobody gets what it did not ask for", f"{self._book} got {name}-{index}")
        topic.grow(index + 1)
        return topic.partitions[index]

    def _check_that_it_may_be_out(self, error: ErrorCode) -> None:
        """A group that becomes a classic one does so in a later generation than some of its members have come to."""
        if error is not ErrorCode.ILLEGAL_GENERATION:
            super()._check_that_it_may_be_out(error)

    async def _look_at_group(self) -> None:
        group = self._group
        group.standing[self.name] = Standing(
            self._member.generation, frozenset(self._books()), frozenset(self._member.topics)
        )
        if group.is_stable(self._companions, self.scene.ledger.live_partitions()):
            answer = await self.ask(ConsumerGroupDescribeRequest(group_ids=[group.name]))
            found = answer.groups[0]
            error = self.expect(
                found.error_code, "ConsumerGroupDescribe", *NOT_NOW, *self.excuses, ErrorCode.GROUP_ID_NOT_FOUND
            )
            is_complete = found.group_state == "Stable" and len(found.members) == len(self._companions)
            group.came_to_rest = group.came_to_rest or (error is ErrorCode.NONE and is_complete)
