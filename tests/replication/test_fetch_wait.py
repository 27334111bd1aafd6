"""Fetches that wait: for enough bytes, until their deadline, or until their client disconnects."""

import pytest

from quire.replication.fetch_wait import FetchWait
from simulator.clock import SimClock
from tests.replication.leader import Leader, batch


def test_a_waiting_fetch_is_answered_when_enough_bytes_can_be_read() -> None:
    leader = Leader()
    size = len(batch(b"a"))
    answered: list[int] = []
    wait = FetchWait([leader.role], 2 * size)
    wait.ended.when_done(lambda _: answered.append(leader.partition.high_watermark))
    leader.append(b"a")
    leader.wake()
    assert answered == []
    leader.append(b"b")
    leader.wake()
    assert answered == [2]
    assert not leader.partition.waiting_fetches


def test_a_waiting_fetch_is_answered_at_its_deadline_with_what_there_is() -> None:
    leader = Leader()
    clock = SimClock()
    answered: list[float] = []
    wait = FetchWait([leader.role], 1)
    wait.ended.when_done(lambda _: answered.append(clock.monotonic_ms()))
    wait.start(clock, 500)
    clock.run_for(499)
    assert answered == []
    clock.run_for(1)
    assert answered == [500]
    assert not leader.partition.waiting_fetches


def test_a_fetch_of_a_client_that_disconnected_leaves_nothing_behind() -> None:
    leader = Leader()
    clock = SimClock()
    wait = FetchWait([leader.role], 1)
    wait.ended.when_done(lambda _: pytest.fail("the client has disconnected"))
    wait.start(clock, 500)
    wait.ended.abandon()
    assert not leader.partition.waiting_fetches
    leader.append(b"a")
    leader.wake()
    clock.run_for(1000)
    assert not leader.partition.waiting_fetches


def test_a_fetch_that_begins_to_wait_after_the_end_of_the_leadership_is_answered_at_once() -> None:
    """In slices, other requests run between the read and the wait."""
    leader = Leader()
    role = leader.role
    seen = leader.partition.readable_end(False)
    leader.partition.leave_role()
    wait = FetchWait([role], 1, seen_ends=[seen])
    wait.start(SimClock(), 500)
    assert wait.ended.done
    assert not role.partition.waiting_fetches
