"""The fetches that wait at one partition: what each learns when the high watermark moves, and when the role ends."""

import pytest

from quire.replication.fetch_wait import FetchWait
from tests.replication.leader import Leader, batch

SIZE = len(batch(b"a"))


def waiting(leader: Leader, missing_bytes: int, answered: list[int]) -> FetchWait:
    wait = FetchWait([leader.role], missing_bytes)
    wait.ended.when_done(lambda _: answered.append(missing_bytes))
    return wait


def test_each_fetch_counts_only_the_bytes_since_it_waits() -> None:
    leader = Leader()
    answered: list[int] = []
    waiting(leader, 2 * SIZE, answered)
    leader.append(b"a")
    leader.wake()
    waiting(leader, 2 * SIZE + 1, answered)
    leader.append(b"b")
    leader.wake()
    assert answered == [2 * SIZE], "the later one has seen one batch"
    assert len(leader.partition.waiting_fetches) == 1


def test_bytes_count_once() -> None:
    leader = Leader()
    answered: list[int] = []
    waiting(leader, 3 * SIZE, answered)
    for value in (b"a", b"b"):
        leader.append(value)
        leader.wake()
    assert answered == []


def test_bytes_that_came_while_no_fetch_waited_do_not_count() -> None:
    leader = Leader()
    answered: list[int] = []
    waiting(leader, SIZE, answered).cancel()
    leader.append(b"a")
    waiting(leader, SIZE, answered)
    leader.partition.waiting_fetches.wake()
    assert answered == []


def test_waking_without_a_change_ends_no_wait() -> None:
    leader = Leader()
    answered: list[int] = []
    waiting(leader, 1, answered)
    leader.partition.waiting_fetches.wake()
    assert answered == []


def test_waking_after_all_were_answered_does_nothing() -> None:
    """The role may end between the append and the turn that wakes the fetches."""
    leader = Leader()
    leader.partition.waiting_fetches.wake()
    assert not leader.partition.waiting_fetches


def test_all_are_answered_when_the_role_ends() -> None:
    leader = Leader()
    answered: list[int] = []
    for missing_bytes in (1, 1 << 20):
        waiting(leader, missing_bytes, answered)
    leader.partition.leave_role()
    assert answered == [1, 1 << 20]
    assert not leader.partition.waiting_fetches


def test_one_that_ends_while_others_are_woken_is_not_called_again() -> None:
    leader = Leader()
    first, second = FetchWait([leader.role], 1), FetchWait([leader.role], 2 * SIZE)
    first.ended.when_done(lambda _: second.ended.abandon())
    second.ended.when_done(lambda _: pytest.fail("its client has disconnected"))
    leader.append(b"a")
    leader.append(b"b")
    leader.wake()
    assert first.ended.done
