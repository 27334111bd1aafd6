"""Writes that wait until they are committed: what completes them, and with which errors."""

from quire.protocol.errors import ErrorCode
from quire.replication.commit_wait import CommitWait
from quire.replication.leader_role import LeaderRole
from quire.replication.members import Members
from simulator.clock import SimClock
from tests.replication.leader import Leader


def test_a_produce_that_waits_is_answered_when_the_high_watermark_passes_it() -> None:
    leader = Leader(isr=(1, 2))
    leader.append(b"a")
    late: list[dict[LeaderRole, ErrorCode]] = []
    wait = CommitWait()
    wait.when_done(late.append)
    wait.wait_for(leader.role, 1, acks_all=True)
    assert late == []
    leader.partition.become_leader(0, Members((1,), (1,)))
    assert late == [{}]


def test_a_produce_that_waits_too_long_times_out_in_the_partitions_that_are_late() -> None:
    leader = Leader(isr=(1, 2))
    leader.append(b"a")
    clock = SimClock()
    late: list[dict[LeaderRole, ErrorCode]] = []
    wait = CommitWait()
    wait.when_done(late.append)
    wait.wait_for(leader.role, 1, acks_all=True)
    wait.start(clock, 100)
    clock.run_for(100)
    assert late == [{leader.role: ErrorCode.REQUEST_TIMED_OUT}]
    leader.partition.become_leader(0, Members((1,), (1,)))
    assert len(late) == 1


def test_a_write_that_begins_to_wait_after_the_end_of_the_leadership_fails_at_once() -> None:
    """The append itself may take the partition offline, when it finds the disk broken."""
    leader = Leader(isr=(1, 2))
    role = leader.role
    leader.append(b"a")
    leader.partition.leave_role(ErrorCode.KAFKA_STORAGE_ERROR)
    told: list[dict[LeaderRole, ErrorCode]] = []
    wait = CommitWait()
    wait.when_done(told.append)
    wait.wait_for(role, 1, acks_all=True)
    wait.start(SimClock(), 100)
    assert told == [{role: ErrorCode.KAFKA_STORAGE_ERROR}]
