"""flush.messages: which records are acknowledged and readable before and after a flush."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.replication.commit_wait import CommitWait
from quire.replication.leader_role import LeaderRole
from quire.replication.members import Members
from quire.storage import LogConfig
from simulator.clock import SimClock
from tests.replication.leader import NOW, Leader, batch
from tests.storage.batches import finish_flush

NEVER = LogConfig().flush_messages

Answers = dict[str, ErrorCode]


class FlushingLeader(Leader):
    """A leader whose flushes end when the test calls `finish_flush`."""

    def __init__(self, flush_messages: int, isr: tuple[int, ...] = (1,)) -> None:
        super().__init__(isr=isr, log_config=LogConfig(flush_messages=flush_messages))
        self.answers: Answers = {}

    def write(self, name: str, *, acks_all: bool = True, sequence: int | None = None) -> None:
        """Appends one record and waits, if necessary, as the produce handler does."""
        producer = {} if sequence is None else {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}
        offset = self.append(name.encode(), acks_all=acks_all, **producer)

        role = self.role

        def finish(failed: dict[LeaderRole, ErrorCode]) -> None:
            self.answers[name] = failed.get(role, ErrorCode.NONE)

        if role.may_acknowledge(offset, acks_all):
            finish({})
        else:
            wait = CommitWait()
            wait.when_done(finish)
            wait.wait_for(role, offset + 1, acks_all=acks_all)

    def change_flush_messages(self, flush_messages: int) -> None:
        self.log.config = LogConfig(flush_messages=flush_messages)
        self.partition.settings_changed()

    def finish_flush(self, *, meanwhile: tuple[str, ...] = ()) -> None:
        """Runs the flush that the leader wants; `meanwhile` is written after it began and before it ended."""
        role = self.to_flush.pop()
        assert role.partition is self.partition
        plan = self.log.start_flush()
        assert plan is not None
        for name in meanwhile:
            self.write(name)
        plan.run()
        finish_flush(self.log, plan)
        role.flushed()


@pytest.mark.parametrize("acks_all", [True, False], ids=["acks=all", "acks=1"])
def test_with_1_a_record_is_neither_acknowledged_nor_read_before_it_is_on_disk(acks_all: bool) -> None:
    leader = FlushingLeader(1)
    leader.write("a", acks_all=acks_all)
    assert leader.answers == {}
    assert (leader.partition.high_watermark, leader.read(0)) == (0, [])
    assert leader.partition.find_offset(0, False) is None
    leader.finish_flush()
    assert leader.answers == {"a": ErrorCode.NONE}
    assert (leader.partition.high_watermark, leader.read(0)) == (1, [b"a"])
    assert not leader.to_flush


def test_acks_1_waits_for_this_nodes_disk_and_not_for_its_followers() -> None:
    leader = FlushingLeader(1, isr=(1, 2))
    leader.write("one", acks_all=False)
    leader.write("all")
    leader.finish_flush()
    assert leader.answers == {"one": ErrorCode.NONE}
    leader.partition.become_leader(0, Members((1,), (1,)))
    assert leader.answers == {"one": ErrorCode.NONE, "all": ErrorCode.NONE}


def test_records_appended_during_a_flush_share_the_next_one() -> None:
    leader = FlushingLeader(1)
    leader.write("first")
    names = tuple(f"writer {number}" for number in range(50))
    leader.finish_flush(meanwhile=names)
    assert list(leader.answers) == ["first"]
    assert leader.read(0) == [b"first"]
    leader.finish_flush()
    assert list(leader.answers) == ["first", *names]
    assert not leader.to_flush


def test_with_3_two_records_are_acknowledged_at_once_and_the_third_after_the_flush_that_it_starts() -> None:
    leader = FlushingLeader(3)
    leader.write("a")
    leader.write("b", acks_all=False)
    assert list(leader.answers) == ["a", "b"]
    assert not leader.to_flush
    leader.write("c")
    assert (list(leader.answers), leader.read(0)) == (["a", "b"], [b"a", b"b"])
    leader.finish_flush()
    assert (list(leader.answers), leader.partition.high_watermark) == (["a", "b", "c"], 3)
    leader.write("d")
    assert list(leader.answers) == ["a", "b", "c", "d"]


def test_fewer_acknowledged_records_than_flush_messages_are_not_on_disk() -> None:
    leader = FlushingLeader(3)
    for number in range(3):
        leader.write(f"{number}")
    leader.finish_flush(meanwhile=("x", "y"))
    assert list(leader.answers) == ["0", "1", "2", "x", "y"], "two more are fewer than three"
    for number in range(3, 6):
        leader.write(f"{number}")
    assert list(leader.answers)[5:] == []
    assert leader.partition.high_watermark - leader.log.recovery_point < 3


def test_a_repeated_batch_is_not_acknowledged_before_the_original_is_on_disk() -> None:
    leader = FlushingLeader(1)
    leader.write("original", sequence=0)
    leader.answers.clear()
    leader.write("original", sequence=0)
    assert leader.answers == {}
    leader.finish_flush()
    assert leader.answers == {"original": ErrorCode.NONE}
    assert leader.log.end_offset == 1


def test_a_change_to_1_flushes_existing_records_and_applies_to_acknowledged_ones() -> None:
    leader = FlushingLeader(NEVER)
    leader.write("a", sequence=0)
    assert leader.answers.pop("a") is ErrorCode.NONE
    leader.change_flush_messages(1)
    leader.write("a", sequence=0)
    assert leader.answers == {}, "the same batch again: its acknowledgement now means more"
    assert leader.read(0) == [b"a"], "what was readable stays readable"
    leader.finish_flush()
    assert leader.answers == {"a": ErrorCode.NONE}
    assert leader.log.recovery_point == 1


def test_a_change_back_answers_the_writes_that_wait() -> None:
    leader = FlushingLeader(1)
    leader.write("a")
    leader.write("b", acks_all=False)
    leader.change_flush_messages(NEVER)
    assert leader.answers == {"a": ErrorCode.NONE, "b": ErrorCode.NONE}
    assert leader.read(0) == [b"a", b"b"]


def test_a_flush_without_room_is_a_storage_error_now_and_is_retried() -> None:
    leader = FlushingLeader(1)
    leader.write("a")
    leader.write("b", acks_all=False)
    leader.to_flush.clear()
    leader.role.flush_failed()
    assert leader.answers == {"a": ErrorCode.KAFKA_STORAGE_ERROR, "b": ErrorCode.KAFKA_STORAGE_ERROR}
    assert leader.read(0) == []
    leader.role.retry_flush()
    leader.finish_flush()
    assert leader.read(0) == [b"a", b"b"]


def test_the_next_append_retries_a_flush_that_failed() -> None:
    leader = FlushingLeader(1)
    leader.write("a", sequence=0)
    leader.to_flush.clear()
    leader.role.flush_failed()
    leader.write("a", sequence=0)
    leader.finish_flush()
    assert leader.answers == {"a": ErrorCode.NONE}


def test_a_write_that_waits_too_long_times_out_and_the_flush_continues() -> None:
    leader = FlushingLeader(1)
    clock = SimClock()
    leader.append(b"a")
    told: list[dict[LeaderRole, ErrorCode]] = []
    wait = CommitWait()
    wait.when_done(told.append)
    wait.wait_for(leader.role, 1, acks_all=True)
    wait.start(clock, 100)
    clock.run_for(100)
    assert told == [{leader.role: ErrorCode.REQUEST_TIMED_OUT}]
    leader.finish_flush()
    assert (len(told), leader.read(0)) == (1, [b"a"])
    assert not leader.role.commit_waits


def test_a_request_to_two_partitions_is_answered_when_the_last_of_them_is_done() -> None:
    one, other = FlushingLeader(1), FlushingLeader(1)
    for leader in (one, other):
        leader.append(b"a")
    told: list[dict[LeaderRole, ErrorCode]] = []
    wait = CommitWait()
    wait.when_done(told.append)
    failing = one.role
    wait.wait_for(failing, 1, acks_all=True)
    wait.wait_for(other.role, 1, acks_all=True)
    one.partition.leave_role(ErrorCode.KAFKA_STORAGE_ERROR)
    assert told == []
    other.finish_flush()
    assert told == [{failing: ErrorCode.KAFKA_STORAGE_ERROR}]


def test_a_flush_that_ends_after_the_leadership_commits_nothing() -> None:
    leader = FlushingLeader(1)
    leader.write("a")
    leader.partition.leave_role(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert leader.answers == {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    leader.finish_flush()
    assert leader.partition.high_watermark == 0
    leader.partition.become_leader(1, Members((1,), (1,)))
    assert leader.partition.high_watermark == 1


def test_a_transaction_is_open_to_readers_until_its_marker_is_on_disk() -> None:
    leader = FlushingLeader(1)
    partition = leader.partition
    guard = leader.role.guards.acquire(7, 0, bumps_epoch=True)
    records = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    leader.role.append(records, True, NOW, guard, in_transaction=True)
    leader.finish_flush()
    leader.role.end_transaction(7, 1, committed=True, coordinator_epoch=0, bumps_epoch=True, now_ms=NOW)
    assert (partition.high_watermark, partition.last_stable_offset) == (1, 0)
    leader.finish_flush()
    assert (partition.high_watermark, partition.last_stable_offset) == (2, 2)
