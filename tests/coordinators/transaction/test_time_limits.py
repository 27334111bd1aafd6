"""Abandoned transactions, and unused transactional ids."""

import pytest

from quire.coordinators.transaction import time_limits
from quire.coordinators.transaction.time_limits import EXPIRY, TIMEOUTS
from quire.protocol.errors import ErrorCode
from tests.coordinators.transaction.sim_cluster import SimCluster, SimProducer

DAY_MS = 86_400_000
T0 = ("t", 0)


def producers(cluster: SimCluster, count: int) -> list[SimProducer]:
    found = [SimProducer(cluster, f"P{number}", f"id{number}") for number in range(count)]
    for producer in found:
        producer.init()
    return found


def told(cluster: SimCluster, words: str) -> int:
    return sum(words in line for line in cluster.story)


def test_there_is_no_timeout_check_while_no_transaction_is_open() -> None:
    cluster = SimCluster()
    (producer,) = producers(cluster, 1)
    assert cluster.shard.timers.keys == [EXPIRY]
    producer.produce(T0)
    assert cluster.shard.timers.keys == [TIMEOUTS, EXPIRY]
    producer.end(commit=True)
    cluster.clock.run_for(10_000)
    assert cluster.shard.timers.keys == [EXPIRY]


def test_a_transaction_is_aborted_only_when_its_timeout_is_over() -> None:
    cluster = SimCluster(settings={"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"})
    (producer,) = producers(cluster, 1)
    producer.produce(T0)
    cluster.clock.run_for(60_000)
    assert not told(cluster, "PrepareAbort")
    cluster.clock.run_for(100)
    assert told(cluster, "PrepareAbort") == 1


def test_a_transaction_that_is_found_in_the_log_times_out_too() -> None:
    cluster = SimCluster()
    (producer,) = producers(cluster, 1)
    producer.produce(T0)
    cluster.clock.run_for(55_000)
    cluster.crash()
    cluster.clock.run_for(15_000)
    assert told(cluster, "t-0: ABORT 1000:1") == 1


def test_many_transactions_that_time_out_at_once_are_aborted_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limits, "PORTION_PARTITIONS", 7)
    cluster = SimCluster()
    for producer in producers(cluster, 20):
        producer.produce(T0)
        producer.produce(("u", 0))
    cluster.clock.run_for(60_001)
    cluster.shard.holding = True
    cluster.clock.run_for(10_000)
    assert told(cluster, "PrepareAbort") == 20
    assert cluster.shard.held == 7
    cluster.shard.holding = False
    cluster.shard.commit()
    assert told(cluster, "CompleteAbort") == 20


def test_transactional_ids_of_any_length_cannot_keep_transactions_from_timing_out() -> None:
    cluster = SimCluster()
    cluster.shard.max_batch_bytes = 1_048_588
    for number in range(40):
        producer = SimProducer(cluster, f"P{number}", f"{number}".rjust(32_000, "x"))
        producer.init()
        producer.produce(T0)
    cluster.clock.run_for(70_000)
    assert told(cluster, "CompleteAbort") == 40


def test_portions_are_no_larger_than_the_log_takes() -> None:
    cluster = SimCluster()
    for producer in producers(cluster, 40):
        producer.produce(T0)
    cluster.shard.max_batch_bytes = 400
    cluster.clock.run_for(70_000)
    assert told(cluster, "CompleteAbort") == 40
    cluster.clock.run_for(8 * DAY_MS)
    assert told(cluster, "is gone") == 40


def test_a_transaction_that_the_log_no_longer_takes_does_not_keep_others_from_timing_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time_limits, "PORTION_PARTITIONS", 1)
    cluster = SimCluster()
    large = SimProducer(cluster, "large", "x" * 1_000)
    large.init()
    for producer in [large, *producers(cluster, 3)]:
        producer.produce(T0)
    cluster.shard.max_batch_bytes = 400
    cluster.clock.run_for(70_000)
    assert told(cluster, "CompleteAbort") == 3
    cluster.shard.max_batch_bytes = None
    cluster.clock.run_for(10_000)
    assert told(cluster, "CompleteAbort") == 4


def test_a_single_transaction_larger_than_a_portion_is_still_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limits, "PORTION_PARTITIONS", 1)
    cluster = SimCluster()
    (producer,) = producers(cluster, 1)
    producer.produce(T0)
    producer.produce(("t", 1))
    cluster.clock.run_for(70_000)
    assert told(cluster, "CompleteAbort") == 1


def test_setting_the_clock_back_delays_a_timeout_and_setting_it_forward_hastens_it() -> None:
    cluster = SimCluster()
    (producer,) = producers(cluster, 1)
    producer.produce(T0)
    cluster.clock.jump_wall(-30_000)
    cluster.clock.run_for(80_000)
    assert not told(cluster, "ABORT")
    cluster.clock.jump_wall(30_000)
    cluster.clock.run_for(10_000)
    assert told(cluster, "ABORT") == 1


def test_a_prepared_transaction_of_a_two_phase_commit_does_not_time_out() -> None:
    cluster = SimCluster()
    (producer,) = producers(cluster, 1)
    producer.produce(T0)
    (transaction,) = cluster.shard.machine._transactions
    transaction.timeout_ms = 2**31 - 1
    cluster.clock.run_for(40 * DAY_MS)
    assert not told(cluster, "ABORT")


def test_a_late_producer_id_aborts_nothing() -> None:
    cluster = SimCluster()
    (producer,) = producers(cluster, 1)
    producer.produce(T0)
    cluster.run(lambda machine, now_ms: machine.abort_timed_out("id0", now_ms, 5))
    cluster.run(lambda machine, now_ms: machine.abort_timed_out("unknown", now_ms, 5))
    assert producer.end(commit=True).value[0] is ErrorCode.NONE


def test_an_abort_that_the_log_refuses_is_tried_again() -> None:
    cluster = SimCluster()
    (producer,) = producers(cluster, 1)
    producer.produce(T0)
    cluster.clock.jump_wall(60_001)
    limits = cluster.shard.machine._time_limits
    refused = limits._abort_timed_out(cluster.clock.now_ms())
    assert refused.records and refused.when_written is not None
    refused.when_written(ErrorCode.MESSAGE_TOO_LARGE)
    cluster.clock.run_for(10_000)
    assert told(cluster, "CompleteAbort") == 1


def test_unused_ids_are_forgotten_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limits, "PORTION_BYTES", 150)
    cluster = SimCluster()
    producers(cluster, 9)
    cluster.clock.run_for(7 * DAY_MS - 1_000)
    cluster.shard.holding = True
    cluster.clock.run_for(2_000)
    assert told(cluster, "is gone") == 9
    assert cluster.shard.held == 3
    cluster.shard.commit()
    assert len(cluster.shard.machine._transactions) == 0


def test_a_transaction_that_waits_for_its_markers_is_not_forgotten_however_long_that_takes() -> None:
    cluster = SimCluster()
    (producer,) = producers(cluster, 1)
    producer.produce(T0)
    cluster.channel.down.add(1)
    producer.end(commit=True)
    cluster.channel.down.clear()
    cluster.elect(T0, -1)
    cluster.clock.jump_wall(10 * DAY_MS)
    cluster.clock.run_for(3_600_000)
    cluster.elect(T0, 1)
    assert told(cluster, "t-0: COMMIT 1000:1") == 1
    assert not told(cluster, "is gone")


def test_an_id_that_is_used_again_before_its_tombstone_is_committed_is_a_new_one() -> None:
    cluster = SimCluster()
    (producer,) = producers(cluster, 1)
    cluster.clock.jump_wall(7 * DAY_MS)
    cluster.shard.holding = True
    cluster.clock.run_for(3_600_000)
    answer = producer.init()
    cluster.shard.commit()
    cluster.shard.holding = False
    assert answer.done or producer.producer_id == 1001
    cluster.crash()
    (transaction,) = cluster.shard.machine._transactions
    assert (transaction.producer_id, transaction.producer_epoch) == (1001, 0)
