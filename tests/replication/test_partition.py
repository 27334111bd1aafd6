"""A partition's leader: appends, the high watermark, who is woken, and what readers may see."""

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Compression, Record, build_batch, iterate_records
from quire.replication.partition import Partition
from quire.replication.settings import PartitionSettings
from quire.replication.waiting import CommitWait, FetchWait
from quire.storage import Log, LogConfig
from simulator.clock import SimClock
from simulator.disk import SimDisk

NOW = 1_700_000_000_000


def records(*values: bytes, timestamp: int = NOW) -> list[Record]:
    return [Record(number, timestamp, None, value) for number, value in enumerate(values)]


def batch(*values: bytes, **settings: int) -> bytearray:
    return build_batch(records(*values), **settings)  # type: ignore[arg-type]


class Leader:
    """A partition on a simulated disk, with its wake-ups collected instead of scheduled."""

    def __init__(
        self,
        settings: PartitionSettings | None = None,
        isr: tuple[int, ...] = (1,),
        log_config: LogConfig | None = None,
    ) -> None:
        self.disk = SimDisk()
        self.disk.make_dirs("/data/t-0")
        self.to_wake: list[Partition] = []
        self.to_flush: list[Partition] = []
        self.failures: list[OSError] = []
        self.log = Log.open(self.disk, "/data/t-0", log_config or LogConfig(), clean=True, now_ms=NOW)
        self.partition = Partition(
            "t",
            bytes(16),
            0,
            1,
            self.log,
            settings or PartitionSettings(),
            self.to_wake.append,
            self.to_flush.append,
            lambda _, error: self.failures.append(error),
        )
        self.partition.become_leader(0, isr)

    def append(self, *values: bytes, acks_all: bool = True, **settings: int) -> int:
        return self.partition.append(batch(*values, **settings), acks_all, NOW).base_offset

    def read(self, offset: int, max_bytes: int = 1 << 20) -> list[bytes | None]:
        data = self.partition.read(offset, max_bytes, at_least_one_batch=True, committed_only=False)
        return [] if data is None else [record.value for record in iterate_records(data.read())]

    def wake(self) -> None:
        waking, self.to_wake[:] = list(self.to_wake), []
        for partition in waking:
            partition.wake_fetch_waits()


def test_a_leader_alone_commits_an_append_at_once() -> None:
    leader = Leader()
    assert leader.append(b"a", b"b") == 0
    assert leader.append(b"c") == 2
    assert leader.partition.high_watermark == 3
    assert leader.read(0) == [b"a", b"b", b"c"]
    assert leader.read(2) == [b"c"]
    assert leader.read(3) == []


def test_nothing_past_the_high_watermark_is_read() -> None:
    leader = Leader(isr=(1, 2))
    leader.append(b"a")
    assert leader.partition.high_watermark == 0
    assert leader.read(0) == []
    assert not leader.partition.may_acknowledge(0, acks_all=True)
    assert leader.partition.may_acknowledge(0, acks_all=False)
    leader.partition.become_leader(0, (1,))
    assert leader.partition.high_watermark == 1
    assert leader.read(0) == [b"a"]


def test_an_offset_outside_the_log_is_out_of_range() -> None:
    leader = Leader()
    leader.append(b"a")
    for offset in (-1, 2):
        with pytest.raises(ApiError) as refused:
            leader.read(offset)
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_acks_all_needs_enough_in_sync_replicas_and_acks_1_does_not() -> None:
    leader = Leader(PartitionSettings(min_insync_replicas=2))
    with pytest.raises(ApiError) as refused:
        leader.append(b"a")
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert leader.append(b"a", acks_all=False) == 0


def test_a_retried_batch_of_an_idempotent_producer_gets_its_first_answer_again() -> None:
    leader = Leader()

    def send(sequence: int) -> int:
        return leader.append(b"x", producer_id=7, producer_epoch=0, base_sequence=sequence)

    for sequence in range(6):
        send(sequence)
    for sequence in range(1, 6):
        assert send(sequence) == sequence
    assert leader.partition.high_watermark == 6
    with pytest.raises(ApiError) as refused:
        send(8)
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_log_append_time_takes_the_place_of_the_producers_clock() -> None:
    leader = Leader(PartitionSettings(log_append_time=True, timestamp_after_max_ms=2**62))
    appended = leader.partition.append(build_batch(records(b"a", timestamp=5)), True, NOW)
    assert appended.max_timestamp == NOW
    data = leader.partition.read(0, 1000, at_least_one_batch=True, committed_only=False)
    assert data is not None
    assert [record.timestamp for record in iterate_records(data.read())] == [NOW]


@pytest.mark.parametrize("compression", list(Compression))
def test_a_topics_own_compression_takes_the_place_of_the_producers(compression: Compression) -> None:
    leader = Leader(PartitionSettings(compression=compression))
    leader.append(b"a" * 500, b"b" * 500)
    assert leader.read(0) == [b"a" * 500, b"b" * 500]
    data = leader.partition.read(0, 1 << 20, at_least_one_batch=True, committed_only=False)
    assert data is not None
    assert data.read()[22] & 7 == compression


def test_a_waiting_fetch_is_answered_when_enough_bytes_have_come() -> None:
    leader = Leader()
    size = len(batch(b"a"))
    answered: list[int] = []
    FetchWait([leader.partition], 2 * size, lambda: answered.append(leader.partition.high_watermark))
    leader.append(b"a")
    leader.wake()
    assert answered == []
    leader.append(b"b")
    leader.wake()
    assert answered == [2]
    assert leader.partition.fetch_waits == {}


def test_a_waiting_fetch_is_answered_at_its_deadline_with_what_there_is() -> None:
    leader = Leader()
    clock = SimClock()
    answered: list[float] = []
    FetchWait([leader.partition], 1, lambda: answered.append(clock.monotonic_ms())).start(clock, 500)
    clock.run_for(499)
    assert answered == []
    clock.run_for(1)
    assert answered == [500]
    assert leader.partition.fetch_waits == {}


def test_a_fetch_whose_client_left_leaves_nothing_behind() -> None:
    leader = Leader()
    clock = SimClock()
    wait = FetchWait([leader.partition], 1, lambda: pytest.fail("nobody is there to be answered"))
    wait.start(clock, 500)
    wait.cancel()
    leader.append(b"a")
    leader.wake()
    clock.run_for(1000)
    assert leader.partition.fetch_waits == {}


def test_a_produce_that_waits_is_answered_when_the_high_watermark_passes_it() -> None:
    leader = Leader(isr=(1, 2))
    leader.append(b"a")
    late: list[dict[Partition, ErrorCode]] = []
    wait = CommitWait()
    wait.when_done(late.append)
    wait.wait_for(leader.partition, 1, acks_all=True)
    assert late == []
    leader.partition.become_leader(0, (1,))
    assert late == [{}]


def test_a_produce_that_waits_too_long_is_told_which_partitions_are_late() -> None:
    leader = Leader(isr=(1, 2))
    leader.append(b"a")
    clock = SimClock()
    late: list[dict[Partition, ErrorCode]] = []
    wait = CommitWait()
    wait.when_done(late.append)
    wait.wait_for(leader.partition, 1, acks_all=True)
    wait.start(clock, 100)
    clock.run_for(100)
    assert late == [{leader.partition: ErrorCode.REQUEST_TIMED_OUT}]
    leader.partition.become_leader(0, (1,))
    assert len(late) == 1


def test_a_partition_that_goes_away_answers_whoever_waits() -> None:
    leader = Leader(isr=(1, 2))
    answered: list[str] = []
    FetchWait([leader.partition], 1, lambda: answered.append("fetch"))
    wait = CommitWait()
    wait.when_done(lambda failed: answered.append(f"produce, {failed[leader.partition].name}"))
    wait.wait_for(leader.partition, 1, acks_all=True)
    leader.partition.resign()
    assert answered == ["fetch", "produce, NOT_LEADER_OR_FOLLOWER"]


def test_a_full_disk_is_a_storage_error_and_the_next_append_goes_on() -> None:
    leader = Leader()
    leader.append(b"a")
    leader.disk.fail_when(lambda operation: operation.kind == "write", 28)
    with pytest.raises(ApiError) as refused:
        leader.append(b"b")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(leader.failures) == 1
    assert leader.append(b"c") == 1
    assert leader.read(0) == [b"a", b"c"]


def test_records_are_deleted_from_the_start_on_and_never_past_the_high_watermark() -> None:
    leader = Leader()
    leader.append(b"a", b"b", b"c")
    assert leader.partition.deletion_target(2) == 2
    leader.partition.log.delete_records_before(2)
    assert leader.partition.deletion_target(1) == 2
    with pytest.raises(ApiError) as refused:
        leader.partition.deletion_target(4)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert leader.partition.deletion_target(-1) == 3


def test_list_offsets_landmarks_and_times() -> None:
    leader = Leader()
    for number in range(5):
        leader.partition.append(build_batch(records(b"x", timestamp=NOW + number * 10)), True, NOW)
    partition = leader.partition
    assert partition.find_offset(-1, False) == (-1, 5, 0)
    assert partition.find_offset(-2, False) == (-1, 0, 0)
    assert partition.find_offset(-3, False) == (NOW + 40, 4, 0)
    assert partition.find_offset(NOW + 11, False) == (NOW + 20, 2, 0)
    assert partition.find_offset(NOW + 41, False) is None


def test_epochs_tell_where_histories_part() -> None:
    leader = Leader()
    leader.append(b"a", b"b")
    leader.partition.become_leader(3, (1,))
    leader.append(b"c")
    partition = leader.partition
    assert partition.epoch_end(0) == (0, 2)
    assert partition.epoch_end(3) == (3, 3)
    assert partition.diverging_epoch(0, 1) is None
    assert partition.diverging_epoch(0, 3) == (0, 2)
    assert partition.diverging_epoch(2, 2) == (0, 2)
    with pytest.raises(ApiError) as refused:
        partition.check_leader_epoch(2)
    assert refused.value.code is ErrorCode.FENCED_LEADER_EPOCH


def test_a_batch_that_grows_in_keeping_is_measured_as_it_is_kept() -> None:
    leader = Leader(PartitionSettings(compression=Compression.NONE, max_message_bytes=1000))
    small = build_batch(records(b"x" * 5000), compression=Compression.ZSTD)
    assert len(small) < 1000
    with pytest.raises(ApiError) as refused:
        leader.partition.append(small, True, NOW)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert leader.partition.high_watermark == 0


def test_a_deposed_leader_says_so() -> None:
    leader = Leader()
    assert leader.partition.is_leader
    leader.partition.resign()
    assert not leader.partition.is_leader
