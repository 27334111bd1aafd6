"""Waking and flushing: once for all requests of a turn, and whatever happens to the partition meanwhile."""

import pytest

from quire.protocol.records import Record, build_batch
from quire.replication.fetch_wait import FetchWait
from quire.replication.leader_role import LeaderRole
from quire.replication.waiting_fetches import WaitingFetches
from simulator.disk_calls import DiskCall
from tests.node.conftest import SimulatedNode


def leader_of(node: SimulatedNode, topic: str) -> LeaderRole:
    return node.node.partitions.leader(topic, None, 0)


def write(node: SimulatedNode, *leaders: LeaderRole) -> None:
    for leader in leaders:
        leader.append(build_batch([Record(0, node.clock.now_ms(), None, b"v")]), True, node.clock.now_ms())


def two_topics(settings: dict[str, str] | None = None) -> tuple[SimulatedNode, LeaderRole, LeaderRole]:
    node = SimulatedNode(settings=settings).start()
    for topic in ("a", "b"):
        node.create_topic(topic)
    return node, leader_of(node, "a"), leader_of(node, "b")


def test_a_waiting_fetch_is_woken_once_for_all_appends_of_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    node, first, _ = two_topics()
    woken: list[WaitingFetches] = []
    right = WaitingFetches.wake

    def counted(waiting: WaitingFetches) -> None:
        woken.append(waiting)
        right(waiting)

    monkeypatch.setattr(WaitingFetches, "wake", counted)
    answered: list[int] = []
    FetchWait([first], 1).ended.when_done(lambda _: answered.append(first.partition.high_watermark))
    write(node, first, first, first)
    assert not answered and not woken
    node.clock.run_for(1)
    assert answered == [3]
    assert woken == [first.partition.waiting_fetches]


def test_fetches_of_other_partitions_are_woken_when_waking_one_fails(caplog: pytest.LogCaptureFixture) -> None:
    node, first, second = two_topics()
    answered: list[str] = []

    def fail(_: None) -> None:
        raise RuntimeError("in a test")

    FetchWait([first], 1).ended.when_done(fail)
    FetchWait([second], 1).ended.when_done(lambda _: answered.append("b"))
    write(node, first, second)
    node.clock.run_for(1)
    assert answered == ["b"]
    assert "waking the fetches that wait for a-0 failed" in caplog.text


def test_a_partition_that_is_deleted_before_its_fetches_are_woken_has_answered_them() -> None:
    node, first, _ = two_topics()
    answered: list[LeaderRole | None] = []
    FetchWait([first], 1).ended.when_done(lambda _: answered.append(first.partition.leader))
    write(node, first)
    node.node.partitions.metadata_updates.remove(node.node.image.topics_by_name["a"], 0)
    assert answered == [None]
    node.clock.run_for(1)
    assert len(answered) == 1


def test_appends_of_a_turn_share_a_flush() -> None:
    node, first, _ = two_topics({"log.flush.interval.messages": "1"})
    syncs: list[str] = []

    def counted(call: DiskCall) -> bool:
        if call.kind == "sync" and call.path.endswith("/a-0/00000000000000000000.log"):
            syncs.append(call.path)
        return False

    node.disk.fail_when(counted)
    write(node, first, first, first)
    assert first.partition.high_watermark == 0
    node.clock.run_until(lambda: first.partition.high_watermark == 3)
    assert len(syncs) == 1


def test_a_partition_that_is_deleted_before_its_flush_is_not_flushed() -> None:
    node, first, second = two_topics({"log.flush.interval.messages": "1"})
    write(node, first, second)
    node.node.partitions.metadata_updates.remove(node.node.image.topics_by_name["a"], 0)
    node.clock.run_until(lambda: second.partition.high_watermark == 1)
    assert first.partition.high_watermark == 0
