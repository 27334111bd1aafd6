"""Replication between simulated nodes, from requests to the bytes on their disks."""

from contextlib import closing

import pytest

from quire import throttled_log
from quire.node.replicas.fetch_schedule import FetchSchedule
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from quire.protocol.messages.fetch import FetchRequest
from quire.protocol.records import Record, build_batch
from quire.replication.partition import Partition
from simulator.jobs import SimJobs
from tests.node.replicas.replicated import TOPIC, Replicated


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def test_every_replica_has_the_same_bytes() -> None:
    nodes = Replicated()
    nodes.written(*numbered(0, 20))
    nodes.until(nodes.is_whole)
    assert nodes.values(1) == numbered(0, 20)
    assert nodes.content(1) == nodes.content(2) == nodes.content(3)


def test_an_acknowledged_record_is_on_every_in_sync_replica() -> None:
    nodes = Replicated()
    for number in range(10):
        nodes.written(b"%d" % number)
        assert [nodes.partition(each).log.end_offset for each in (1, 2, 3)] == [number + 1] * 3


def test_another_replica_takes_over_at_once_when_the_leader_is_killed() -> None:
    nodes = Replicated()
    nodes.written(*numbered(0, 5))
    killed = nodes.leader_node()
    nodes.kill(killed)
    began_ms = nodes.clock.monotonic_ms()
    nodes.until(nodes.has_leader)
    nodes.written(b"5")
    assert nodes.clock.monotonic_ms() - began_ms < 1_000
    assert killed not in nodes.isr()
    nodes.restart(killed)
    nodes.until(nodes.is_whole)
    assert nodes.values(killed) == numbered(0, 6)


def test_a_new_leader_is_followed_at_once_although_fetches_from_it_are_waiting() -> None:
    nodes = Replicated()
    for name in ("a", "b"):
        nodes.create(name, [2, 3, 1] if name == "a" else [3, 2, 1])
    nodes.written(b"0")
    nodes.wait(2_000)
    nodes.kill(1)
    nodes.until(nodes.has_leader)
    began_ms = nodes.clock.monotonic_ms()
    nodes.written(b"1")
    assert nodes.clock.monotonic_ms() - began_ms < 150


def test_an_isolated_leader_acknowledges_nothing_and_gives_up_what_only_it_has() -> None:
    nodes = Replicated()
    nodes.written(b"0")
    old = nodes.leader_node()
    name = nodes.isolate(old)
    lost = nodes.produce(b"lost", to=old, acks=1)
    assert nodes.settle(lost) == ErrorCode.NONE
    assert nodes.settle(nodes.produce(b"refused", to=old, timeout_ms=1_000)) == ErrorCode.REQUEST_TIMED_OUT
    nodes.until(lambda: nodes.leader_node() != old)
    nodes.written(b"1", b"2")
    nodes.network.heal(name)
    nodes.until(nodes.is_whole)
    assert nodes.values(old) == [b"0", b"1", b"2"]
    assert nodes.content(1) == nodes.content(2) == nodes.content(3)


def test_a_fetch_that_waits_at_a_leader_that_vanished_ends_with_the_leadership() -> None:
    """No packet says that the machine is gone, and the timeout of the fetch is long."""
    nodes = Replicated(replica_socket_timeout_ms="600000")
    nodes.written(b"0")
    nodes.until(nodes.is_whole)
    first = nodes.leader_node()
    follower = nodes.others(first)[0]
    nodes.isolate(first)
    ended = nodes.nodes[follower].replicas._fetchers[first]
    nodes.until(lambda: nodes.leader_node() != first)
    nodes.written(b"1")
    assert ended._closed and first not in nodes.nodes[follower].replicas._fetchers
    nodes.network.heal()
    nodes.until(nodes.is_whole)
    while nodes.leader_node() != first:
        nodes.kill(leader := nodes.leader_node())
        nodes.until(nodes.has_leader)
        nodes.restart(leader)
        nodes.until(nodes.is_whole)
    nodes.written(b"2")
    assert nodes.values(follower) == [b"0", b"1", b"2"]


def test_a_follower_that_is_cut_off_leaves_the_isr_and_rejoins_it() -> None:
    nodes = Replicated(broker_session_timeout_ms="60000", replica_lag_time_max_ms="2000")
    nodes.written(b"0")
    (follower, _) = nodes.others(nodes.leader_node())
    name = nodes.isolate(follower)
    waiting = nodes.produce(b"1", timeout_ms=30_000)
    began_ms = nodes.clock.monotonic_ms()
    assert nodes.settle(waiting) == ErrorCode.NONE
    assert 1_000 < nodes.clock.monotonic_ms() - began_ms < 4_000
    assert nodes.isr() == set(nodes.nodes) - {follower}
    nodes.network.heal(name)
    nodes.until(nodes.is_whole)
    assert nodes.values(follower) == [b"0", b"1"]


def test_writes_continue_while_a_follower_that_was_cut_off_is_outside_the_isr() -> None:
    """It still sends heartbeats, so the controller considers it eligible to join."""
    nodes = Replicated(broker_session_timeout_ms="60000", replica_lag_time_max_ms="2000")
    nodes.written(*numbered(0, 5))
    leader = nodes.leader_node()
    (follower, _) = nodes.others(leader)
    nodes.network.partition("fetches", [(f"node{follower}", f"node{leader}")])
    assert nodes.settle(nodes.produce(b"5", timeout_ms=30_000)) == ErrorCode.NONE
    for number in range(6, 20):
        assert nodes.settle(nodes.produce(b"%d" % number, timeout_ms=1_000)) == ErrorCode.NONE
        nodes.wait(500)
    assert nodes.isr() == set(nodes.nodes) - {follower}
    nodes.network.heal("fetches")
    nodes.until(nodes.is_whole)
    assert nodes.values(follower) == numbered(0, 20)


def test_too_few_in_sync_replicas_refuse_acks_all_and_commit_nothing() -> None:
    nodes = Replicated(min_isr=3, broker_session_timeout_ms="60000", replica_lag_time_max_ms="2000")
    nodes.written(b"0")
    (follower, _) = nodes.others(nodes.leader_node())
    name = nodes.isolate(follower)
    assert nodes.settle(nodes.produce(b"1")) == ErrorCode.REQUEST_TIMED_OUT
    nodes.until(lambda: follower not in nodes.isr())
    assert nodes.settle(nodes.produce(b"2")) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert nodes.settle(nodes.produce(b"3", acks=1)) == ErrorCode.NONE
    assert nodes.leader().partition.high_watermark == 1
    nodes.network.heal(name)
    nodes.until(nodes.is_whole)
    assert nodes.values(follower) == [b"0", b"1", b"3"]


def test_acks_all_waits_for_the_disks_of_all_replicas_and_no_longer() -> None:
    nodes = Replicated(topic_settings={"flush.messages": "1"})
    began_ms = nodes.clock.monotonic_ms()
    for number in range(10):
        nodes.written(b"%d" % number)
        assert [nodes.partition(each).log.recovery_point for each in (1, 2, 3)] == [number + 1] * 3
    assert nodes.clock.monotonic_ms() - began_ms < 10 * 100


def test_a_damaged_batch_is_reported_and_holds_up_no_other_partition(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nodes = Replicated(broker_session_timeout_ms="60000")
    nodes.create("u", [1, 2, 3])
    nodes.written(b"0")
    nodes.until(nodes.is_whole)
    leader = nodes.leader()
    log_file = f"/data/{TOPIC}-0/{0:020d}.log"
    now_ms = nodes.clock.now_ms()
    for role in (leader, nodes.leader("u")):
        role.append(build_batch([Record(0, now_ms, None, b"1")]), True, now_ms)
    with closing(nodes.disks[leader.partition.node_id].open(log_file)) as file:
        file.pwritev([b"X"], file.size() - 2)  # before any follower has fetched it
    nodes.wait(10_000)
    others = nodes.others(leader.partition.node_id)
    assert [nodes.partition(each).log.end_offset for each in others] == [1, 1]
    assert leader.partition.high_watermark == 1
    assert nodes.leader("u").partition.high_watermark == 1
    said = [record.message for record in caplog.records if "replica failed" in record.message]
    assert len(said) == throttled_log.FEW * len(others), "a few lines a minute on each follower"
    assert all(f"partition={TOPIC}-0" in each and "CRC" in each and "\n" not in each for each in said)


def with_a_follower_away() -> tuple[Replicated, int]:
    """The follower was killed after ten records, and has left the ISR; there are twenty now."""
    nodes = Replicated(min_isr=1, broker_session_timeout_ms="2000")
    nodes.written(*numbered(0, 10))
    leader = nodes.leader_node()
    (follower, _) = nodes.others(leader)
    nodes.kill(follower)
    nodes.until(lambda: follower not in nodes.isr())
    nodes.written(*numbered(10, 20))
    return nodes, follower


def test_a_follower_begins_where_the_leaders_log_starts() -> None:
    nodes, follower = with_a_follower_away()
    nodes.until(nodes.is_whole)
    delete(nodes, 15)
    nodes.restart(follower)
    nodes.until(nodes.is_whole)
    assert nodes.partition(follower).log.start_offset == 15
    assert nodes.values(follower) == numbered(15, 20)


@pytest.mark.parametrize("more", [0, 15], ids=["ends-before", "ends-after"])
def test_replicas_whose_logs_start_later_copy_all_that_an_unclean_leader_wrote(more: int) -> None:
    """Its log and theirs have nothing in common: it was away while records were written, and deleted again."""
    nodes = Replicated(
        ["broker", "broker", "broker", "controller"],
        min_isr=1,
        topic_settings={"unclean.leader.election.enable": "true"},
        broker_session_timeout_ms="2000",
    )
    nodes.written(*numbered(0, 5))
    nodes.until(nodes.is_whole)
    nodes.kill(3)
    nodes.until(lambda: 3 not in nodes.isr())
    nodes.written(*numbered(5, 20))
    nodes.until(nodes.is_whole)
    assert delete(nodes, 15) == (ErrorCode.NONE, 15)
    nodes.kill(1)
    nodes.kill(2)
    nodes.restart(3)
    nodes.until(nodes.has_leader)
    nodes.written(*numbered(100, 100 + more))
    nodes.restart(1)
    nodes.restart(2)
    nodes.until(nodes.is_whole)
    for replica in (1, 2):
        log = nodes.partition(replica).log
        assert (log.start_offset, log.end_offset) == (5, 5 + more)
        assert nodes.values(replica) == numbered(100, 100 + more)


def test_a_follower_commits_nothing_more_before_its_log_starts_where_the_leaders_does() -> None:
    """What it has before that start may be of an earlier leader, and a consumer could read it here."""
    nodes, follower = with_a_follower_away()
    delete(nodes, 5)
    nodes.begin(follower)
    seen: set[tuple[int, bool]] = set()

    def follows() -> bool:
        found = [each for each in nodes.nodes[follower].partitions if each.topic == TOPIC]
        seen.update((each.log.start_offset, each.high_watermark > 10) for each in found)
        return (5, True) in seen

    nodes.until(follows)
    assert (0, False) in seen
    assert (0, True) not in seen


def test_deleted_records_are_deleted_on_every_replica_when_that_is_reported() -> None:
    nodes = Replicated()
    nodes.written(*numbered(0, 10))
    nodes.until(nodes.is_whole)
    assert delete(nodes, 7) == (ErrorCode.NONE, 7)
    assert [nodes.partition(each).log.start_offset for each in (1, 2, 3)] == [7, 7, 7]


def delete(nodes: Replicated, offset: int) -> tuple[ErrorCode, int]:
    wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=[wanted])], timeout_ms=5_000)
    response = nodes.ask(nodes.leader_node(), request, DeleteRecordsResponse)
    (result,) = response.topics[0].partitions
    return ErrorCode(result.error_code), result.low_watermark


@pytest.mark.parametrize("seed", range(5))
def test_replicas_agree_after_leaders_were_killed_one_after_the_other(seed: int) -> None:
    nodes = Replicated(seed=seed)
    written = 0
    for _ in range(4):
        nodes.written(*numbered(written, written + 5))
        written += 5
        killed = nodes.leader_node()
        nodes.produce(b"in progress").abandon()
        nodes.kill(killed)
        nodes.until(nodes.has_leader)
        nodes.written(b"%d" % written)
        written += 1
        nodes.restart(killed)
        nodes.until(nodes.is_whole)
    acknowledged = [value for value in nodes.values(1) if value != b"in progress"]
    assert acknowledged == numbered(0, written)
    assert nodes.content(1) == nodes.content(2) == nodes.content(3)


def test_a_fetch_costs_what_has_changed_and_not_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Replicated()
    nodes.create("idle", [1, 2, 3], partitions=50)
    nodes.wait(3_000)
    looked_at: list[str] = []
    read = Partition.read_uncommitted

    def counted(partition: Partition, *args: int, **more: bool) -> object:
        looked_at.append(partition.topic)
        return read(partition, *args, **more)

    monkeypatch.setattr(Partition, "read_uncommitted", counted)
    nodes.written(b"0")
    nodes.wait(5_000)
    assert looked_at.count("idle") == 0
    assert 0 < looked_at.count(TOPIC) < 12


def test_a_record_costs_one_fetch_of_each_follower(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fetch that commits it waits for the next record, instead of returning with the high watermark alone."""
    nodes = Replicated()
    nodes.written(b"0")
    sent: list[str] = []
    fill = FetchSchedule.fill

    def counted(schedule: FetchSchedule, request: FetchRequest, max_bytes: int) -> None:
        sent.extend(key[0].hex() for key in schedule.partitions)
        fill(schedule, request, max_bytes)

    monkeypatch.setattr(FetchSchedule, "fill", counted)
    nodes.written(*numbered(1, 51))
    assert sent.count(nodes.leader().partition.topic_id.hex()) <= 2 * 50 + 2


def test_a_slow_flush_costs_few_fetches_and_the_leader_learns_of_its_end_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Replicated(topic_settings={"flush.messages": "1"}, replica_lag_time_max_ms="60000")
    nodes.create("u", [1, 2, 3])
    nodes.written(b"0")
    others = nodes.others(nodes.leader_node())
    for each in others:
        jobs = nodes.nodes[each].jobs
        assert isinstance(jobs, SimJobs)
        jobs.longest_ms = 3_000.0
    sent: list[FetchRequest] = []
    fill = FetchSchedule.fill

    def counted(schedule: FetchSchedule, request: FetchRequest, max_bytes: int) -> None:
        sent.append(request)
        fill(schedule, request, max_bytes)

    monkeypatch.setattr(FetchSchedule, "fill", counted)
    began_ms = nodes.clock.monotonic_ms()
    acknowledged = nodes.produce(b"1", timeout_ms=20_000)
    nodes.until(lambda: all(nodes.partition(each).log.recovery_point == 2 for each in others))
    flush_ms = nodes.clock.monotonic_ms() - began_ms
    assert flush_ms > 1_000
    assert len(sent) < 200
    assert nodes.settle(acknowledged) == ErrorCode.NONE
    assert nodes.clock.monotonic_ms() - began_ms < 1.4 * flush_ms


def test_followers_learn_what_is_committed_although_nothing_more_is_written() -> None:
    nodes = Replicated(replica_fetch_wait_max_ms="500")
    nodes.written(b"0", b"1")
    began_ms = nodes.clock.monotonic_ms()
    nodes.until(nodes.is_whole)
    assert nodes.clock.monotonic_ms() - began_ms < 600


def test_a_leader_that_wrote_nothing_follows_the_next_one() -> None:
    """Its last epoch has no records, and no other log has that epoch."""
    nodes = Replicated(min_isr=1)
    nodes.written(b"0")
    first = nodes.leader_node()
    name = nodes.isolate(first)
    nodes.until(lambda: nodes.leader_node() != first)
    second = nodes.leader_node()
    cut = nodes.isolate(second)
    nodes.network.heal(name)
    nodes.until(lambda: nodes.leader_node() not in (first, second) or nodes.leader().leader_epoch > 1)
    nodes.network.heal(cut)
    nodes.until(nodes.is_whole)
    nodes.written(b"1")
    nodes.until(nodes.is_whole)
    assert nodes.content(1) == nodes.content(2) == nodes.content(3)
    assert [nodes.partition(each).log.epochs.entries for each in (2, 3)] == [nodes.partition(1).log.epochs.entries] * 2
