"""The ledger of consumer groups with constructed answers: who may own a partition, and when a group is stable."""

import pytest

from simulator.consumer_group_ledger import (
    NEVER_BACK,
    ONE_OWNER,
    SUBSCRIBED,
    ConsumerGroupBook,
    ConsumerMemberBook,
    Standing,
)
from simulator.ledger import Counts, PartitionBook, TopicBook
from simulator.ticks import Ticks
from tests.simulator.expected_violation import expect


class Run:
    """Two live members of a group that reads two partitions."""

    def __init__(self) -> None:
        self.ticks = Ticks()
        self.group = ConsumerGroupBook("group", Counts(), self.ticks)
        self.partitions = TopicBook("t", bytes(16), 2, stays=True).partitions
        self.silent: list[str] = []
        self.one, self.two = self.join("one"), self.join("two")

    def join(self, name: str) -> ConsumerMemberBook:
        member = ConsumerMemberBook(name, lambda: name not in self.silent)
        self.group.joins(member)
        return member

    def tell(self, member: ConsumerMemberBook, *indexes: int, asked_tick: int | None = None) -> None:
        tick = self.ticks.next() if asked_tick is None else asked_tick
        self.group.told_to_own(member, tick, [self.partitions[index] for index in indexes])


@pytest.fixture
def run() -> Run:
    return Run()


def test_no_member_gets_a_partition_of_another(run: Run) -> None:
    run.tell(run.one, 0)
    run.tell(run.two, 1)
    run.tell(run.one, 0)
    with expect(ONE_OWNER):
        run.tell(run.two, 0)


def test_revoked_partitions_are_free(run: Run) -> None:
    run.tell(run.one, 0)
    del run.one.held[run.partitions[0]]
    run.tell(run.two, 0)


def test_partitions_of_a_silent_member_are_free(run: Run) -> None:
    run.tell(run.one, 0)
    run.silent.append("one")
    run.tell(run.two, 0)


def test_partitions_of_a_member_that_left_are_free(run: Run) -> None:
    run.tell(run.one, 0)
    run.group.leaves(run.one)
    run.tell(run.two, 0)


def test_of_concurrent_answers_the_first_may_be_the_older(run: Run) -> None:
    asked_tick = run.ticks.next()
    run.tell(run.one, 0)
    run.tell(run.two, 0, asked_tick=asked_tick)


def test_an_epoch_never_goes_back(run: Run) -> None:
    run.group.told_epoch(run.one, 0, 3)
    run.group.told_epoch(run.one, 3, 3)
    with expect(NEVER_BACK):
        run.group.told_epoch(run.one, 3, 2)


def test_a_group_is_stable_when_all_live_members_own_everything_they_want_in_one_epoch(run: Run) -> None:
    first, second = run.partitions
    clients = ["a", "b"]

    def is_stable(*standing: tuple[int, tuple[int, ...]]) -> bool:
        for client, (epoch, indexes) in zip(clients, standing, strict=False):
            owned = frozenset(run.partitions[index] for index in indexes)
            run.group.standing[client] = Standing(epoch, owned, frozenset(["t"]))
        return run.group.is_stable(clients, [first, second])

    assert not is_stable((4, (0,)))
    assert is_stable((4, (0,)), (4, (1,)))
    assert is_stable((4, (0, 1)), (4, ()))
    assert not is_stable((4, (0,)), (5, (1,)))
    assert not is_stable((4, (0,)), (4, ()))
    assert not is_stable((4, (0, 1)), (4, (1,)))


def test_a_member_gets_only_what_it_subscribes_to(run: Run) -> None:
    told = frozenset(run.partitions)
    run.group.told_topics(run.one, told, ["t"], None)
    with expect(SUBSCRIBED):
        run.group.told_topics(run.one, told, ["u"], None)


def test_a_late_request_is_answered_with_earlier_topics_only_if_the_member_would_not_report_again(run: Run) -> None:
    old, new = run.partitions[0], TopicBook("u", bytes(15) + b"u", 1, stays=True).partitions[0]
    run.group.told_topics(run.one, frozenset({old, new}), ["u"], frozenset({new}))
    for reported in (frozenset[PartitionBook](), frozenset({old, new})):
        with expect(SUBSCRIBED):
            run.group.told_topics(run.one, frozenset({old, new}), ["u"], reported)
