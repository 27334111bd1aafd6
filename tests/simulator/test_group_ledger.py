"""The ledger of groups with constructed answers: which member may own what, in which generation, and which may join."""

import pytest

from simulator.group_ledger import AS_MADE, NEVER_BACK, ONE_OWNER, GroupBook, MemberBook, Standing
from simulator.ledger import Counts
from simulator.ticks import Ticks
from tests.simulator.expected_violation import expect

UUID = "-00000000-0000-0000-0000-00000000000"
P0, P1 = ("t", 0), ("t", 1)
REPLACED = "a static member that was replaced is refused"


class Run:
    def __init__(self) -> None:
        self.ticks = Ticks()
        self.group = GroupBook("group", Counts(), self.ticks)

    def join(self, name: str, generation: int, *, static: bool = False, asked_tick: int | None = None) -> MemberBook:
        """`name` ends with a digit, by which its member ids differ."""
        asked_tick = self.ticks.next() if asked_tick is None else asked_tick
        member_id = name[:-1] + UUID + name[-1]
        return self.group.joined(self.group.assigned, asked_tick, generation, member_id, name[:-1] if static else None)

    def tell(self, member: MemberBook, generation: int, *owned: tuple[str, int], floor: int = -1) -> None:
        self.group.told(floor, generation, member, owned)


@pytest.fixture
def run() -> Run:
    return Run()


def test_each_member_gets_its_own_share(run: Run) -> None:
    one, two = run.join("a1", 1), run.join("b1", 1)
    run.group.handed_in(1, {one.member_id: (P0,), two.member_id: (P1,)})
    run.tell(one, 1, P0)
    run.tell(two, 1, P1)
    with expect(AS_MADE):
        run.tell(two, 1)


def test_two_members_never_own_one_partition(run: Run) -> None:
    one, two = run.join("a1", 1), run.join("b1", 1)
    run.group.handed_in(1, {one.member_id: (P0,), two.member_id: (P0,)})
    run.tell(one, 1, P0)
    with expect(ONE_OWNER):
        run.tell(two, 1, P0)


def test_all_shares_are_from_one_attempt(run: Run) -> None:
    one, two = run.join("a1", 1), run.join("b1", 1)
    run.group.handed_in(1, {one.member_id: (P0,), two.member_id: (P1,)})
    run.group.handed_in(1, {one.member_id: (P1,), two.member_id: (P0,)})
    run.tell(one, 1, P1)
    with expect(AS_MADE):
        run.tell(two, 1)
    run.tell(two, 1, P0)


def test_a_member_missing_from_the_assignment_owns_nothing(run: Run) -> None:
    one, two = run.join("a1", 1), run.join("b1", 1)
    run.group.handed_in(1, {one.member_id: (P0, P1)})
    run.tell(two, 1)


def test_a_generation_that_was_assigned_never_goes_back(run: Run) -> None:
    one = run.join("a1", 5)
    run.join("b1", 4)
    run.group.handed_in(5, {one.member_id: (P0,)})
    run.tell(one, 5, P0)
    run.join("c1", 5)
    with expect(NEVER_BACK):
        run.join("d1", 4)
    with expect(NEVER_BACK):
        run.group.let_in(5, 4, one, False, "OffsetCommit")


class TestStaticMembers:
    def test_one_that_is_back_owns_what_it_did(self, run: Run) -> None:
        before = run.join("a1", 1, static=True)
        run.group.handed_in(1, {before.member_id: (P0,)})
        run.tell(before, 1, P0)
        after = run.join("a2", 1, static=True)
        run.tell(after, 1, P0)
        assert before.replaced
        with expect(REPLACED):
            run.group.let_in(-1, 1, before, before.replaced, "OffsetCommit")

    def test_a_share_may_belong_to_an_id_whose_response_was_lost(self, run: Run) -> None:
        run.group.handed_in(1, {"a" + UUID + "1": (P0,)})
        run.tell(run.join("a2", 1, static=True), 1, P0)

    def test_of_two_concurrent_joins_either_may_have_replaced_the_other(self, run: Run) -> None:
        asked_tick = run.ticks.next()
        first = run.join("a1", 1, static=True)
        second = run.join("a2", 1, static=True, asked_tick=asked_tick)
        assert not first.replaced
        assert not second.replaced

    def test_a_member_that_joins_again_under_its_id_is_not_replaced(self, run: Run) -> None:
        member = run.join("a1", 1, static=True)
        assert run.join("a1", 2, static=True) is member
        assert not member.replaced


def test_a_group_is_stable_when_all_live_members_own_everything_in_one_generation(run: Run) -> None:
    one, two = run.join("a1", 1), run.join("b1", 1)
    run.group.handed_in(1, {one.member_id: (P0,), two.member_id: (P1,)})
    assert not run.group.is_stable(["one", "two"])
    run.group.standing["one"] = Standing(1, (P0,))
    assert not run.group.is_stable(["one", "two"])
    run.group.standing["two"] = Standing(2, (P1,))
    assert not run.group.is_stable(["one", "two"])
    run.group.standing["two"] = Standing(1, (P1,))
    assert run.group.is_stable(["one", "two"])
    assert not run.group.is_stable(["one"]), "a member that is gone owns the rest"
