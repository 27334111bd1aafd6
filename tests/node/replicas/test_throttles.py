"""Throttled replication between simulated nodes: the rate, who is held up and who is not, changes while it runs."""

import pytest

from quire.node.replicas.fetch_schedule import FetchSchedule
from quire.node.replicas.replica_session import ReplicaSession
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchRequest
from tests.node.replicas.throttled import (
    BIG,
    BROKER_RESOURCE,
    FOLLOWER,
    FROM,
    LEADER,
    TO,
    TOPIC_RESOURCE,
    Throttled,
)

SIDES = pytest.mark.parametrize("side", [LEADER, FOLLOWER], ids=["leader", "follower"])


def rate_of(nodes: Throttled, duration_ms: float) -> float:
    """Bytes per second that node 2 copies."""
    before = nodes.copied_bytes
    nodes.wait(duration_ms)
    return (nodes.copied_bytes - before) * 1000 / duration_ms


@SIDES
@pytest.mark.parametrize("partitions", [1, 30])
def test_a_throttle_holds_within_ten_percent(side: tuple[str, str], partitions: int) -> None:
    nodes = Throttled(partitions=partitions, batches=600 // partitions, batch_bytes=5_000, fetch_wait_ms=9_000)
    nodes.throttle(side, 80_000)
    nodes.reassign(FROM, TO)
    nodes.until(lambda: nodes.copied_bytes > 0)
    nodes.wait(3_000)
    assert rate_of(nodes, 25_000) == pytest.approx(80_000, rel=0.1)
    nodes.until(lambda: nodes.is_copied)


def test_both_throttles_together_hold_the_lower_one() -> None:
    nodes = Throttled(partitions=20, batches=30, batch_bytes=5_000)
    nodes.throttle(LEADER, 50_000)
    nodes.throttle(FOLLOWER, 100_000)
    nodes.reassign(FROM, TO)
    nodes.wait(5_000)
    assert rate_of(nodes, 25_000) == pytest.approx(50_000, rel=0.1)


@SIDES
def test_other_partitions_are_not_held_up(side: tuple[str, str]) -> None:
    nodes = Throttled()
    while nodes.leader_node() != FROM:
        nodes.kill(leader := nodes.leader_node())
        nodes.until(nodes.has_leader)
        nodes.restart(leader)
        nodes.until(nodes.is_whole)
    nodes.throttle(side, 1)
    nodes.reassign(FROM, TO)
    nodes.wait(1_000)
    assert 0 < nodes.copied_bytes < 20_000
    for number in range(20):
        began_ms = nodes.clock.monotonic_ms()
        nodes.written(b"%d" % number)
        assert nodes.clock.monotonic_ms() - began_ms < 100
    assert nodes.copied_bytes < 20_000


@SIDES
@pytest.mark.parametrize("partitions", [1, 12])
def test_something_is_copied_in_every_window_however_low_the_rate_is(side: tuple[str, str], partitions: int) -> None:
    nodes = Throttled(partitions=partitions, batches=24 // partitions)
    nodes.throttle(side, 0)
    nodes.reassign(FROM, TO)
    nodes.wait(2_000)
    for _ in range(12):
        before = nodes.copied_bytes
        nodes.wait(12_000)
        assert 10_000 <= nodes.copied_bytes - before < 40_000
    assert all(each.log.size_bytes for each in nodes.copies()), "each partition has its turn"


@SIDES
def test_in_sync_replicas_are_never_throttled_but_count(side: tuple[str, str]) -> None:
    nodes = Throttled(batches=0, replicas=2, lag_ms=3_000)
    nodes.until(lambda: nodes.leader(BIG).followers.in_sync.committed == (1, 2))
    nodes.throttle(side, 1)
    for _ in range(10):
        began_ms = nodes.clock.monotonic_ms()
        nodes.append(acks=-1)
        assert nodes.clock.monotonic_ms() - began_ms < 100
    throttles = nodes.nodes[FROM if side is LEADER else TO].replicas.throttles
    assert (throttles.leader if side is LEADER else throttles.follower).is_used_up
    nodes.wait(10_000)
    assert nodes.isr(BIG) == {FROM, TO}


@SIDES
def test_a_throttle_can_be_raised_and_removed_while_replicas_wait(side: tuple[str, str]) -> None:
    # A leader ends its own waits; a follower learns of a change while its fetch is at the leader.
    nodes = Throttled(batches=200, fetch_wait_ms=9_000 if side is LEADER else 500)
    nodes.throttle(side, 1)
    nodes.reassign(FROM, TO)
    nodes.until(lambda: nodes.copied_bytes > 0)
    nodes.wait(1_000)
    assert nodes.copied_bytes < 40_000
    nodes.throttle(side, 100_000)
    assert rate_of(nodes, 10_000) == pytest.approx(100_000, rel=0.25)
    nodes.throttle(side, 1)
    before = nodes.copied_bytes
    nodes.wait(3_000)
    assert nodes.copied_bytes - before <= 40_000
    assert nodes.alter(TOPIC_RESOURCE, BIG, {side[1]: None}) == ErrorCode.NONE
    nodes.until(lambda: nodes.is_copied, 1_500)


@SIDES
def test_removing_the_rate_removes_the_throttle(side: tuple[str, str]) -> None:
    nodes = Throttled(batches=100)
    nodes.throttle(side, 1)
    nodes.reassign(FROM, TO)
    nodes.wait(1_000)
    broker = str(FROM if side is LEADER else TO)
    assert nodes.alter(BROKER_RESOURCE, broker, {side[0]: None}) == ErrorCode.NONE
    nodes.until(lambda: nodes.is_copied, 1_500)


@SIDES
def test_a_list_counts_for_the_brokers_and_partitions_in_it(side: tuple[str, str]) -> None:
    nodes = Throttled(partitions=3, batches=20)
    mine, other = (FROM, TO) if side is LEADER else (TO, FROM)
    nodes.throttle(side, 1, f"0:{mine},1:{other}")
    nodes.reassign(FROM, TO)
    nodes.wait(3_000)
    ends = {each.index: each.log.end_offset for each in nodes.copies()}
    assert ends[1] == ends[2] == 20 and ends[0] < 20


@SIDES
def test_a_throttle_holds_after_the_brokers_have_restarted(side: tuple[str, str]) -> None:
    nodes = Throttled(batches=100)
    nodes.throttle(side, 1)
    nodes.reassign(FROM, TO)
    nodes.wait(1_000)
    for node_id in (FROM, TO):
        nodes.kill(node_id)
        nodes.restart(node_id)
        nodes.until(lambda: nodes.has_leader(BIG))
    before = nodes.copied_bytes
    nodes.wait(5_000)
    assert nodes.copied_bytes - before <= 40_000


def test_waiting_for_the_quota_is_not_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Throttled(partitions=30, batches=4)
    nodes.throttle(LEADER, 0)
    nodes.throttle(FOLLOWER, 0)
    nodes.reassign(FROM, TO)
    nodes.wait(2_000)
    fetches: list[FetchRequest] = []
    fill = FetchSchedule.fill

    def filled(schedule: FetchSchedule, request: FetchRequest, max_bytes: int) -> None:
        fetches.append(request)
        fill(schedule, request, max_bytes)

    monkeypatch.setattr(FetchSchedule, "fill", filled)
    nodes.wait(10_000)
    followed = sum(len(each.replicas._fetchers) for each in nodes.nodes.values())
    assert 0 < len(fetches) <= followed * 21 + 4, "each waits at its leader for 500 ms, and one opening comes"


def test_an_append_to_a_partition_that_waits_for_the_quota_wakes_no_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Throttled(fetch_wait_ms=9_000)
    nodes.throttle(LEADER, 0)
    nodes.reassign(FROM, TO)
    nodes.until(lambda: nodes.copied_bytes > 0)
    nodes.wait(1_000)
    woken: list[ReplicaSession] = []
    wake = ReplicaSession._wake

    def counted(session: ReplicaSession) -> None:
        if any(each.topic_id == nodes.copies()[0].topic_id for each in session.partitions.values()):
            woken.append(session)
        wake(session)

    monkeypatch.setattr(ReplicaSession, "_wake", counted)
    for _ in range(20):
        nodes.append()
    assert len(woken) < 3


@pytest.mark.parametrize("value", ["-1", "1.5", "many", str(2**63)])
@SIDES
def test_a_rate_that_is_none_is_refused(side: tuple[str, str], value: str) -> None:
    nodes = Throttled(batches=0)
    assert nodes.alter(BROKER_RESOURCE, "1", {side[0]: value}) == ErrorCode.INVALID_REQUEST
    assert nodes.alter(TOPIC_RESOURCE, BIG, {side[1]: "0"}) == ErrorCode.INVALID_CONFIG
    assert nodes.alter(BROKER_RESOURCE, "", {side[0]: "1000"}) == ErrorCode.NONE
