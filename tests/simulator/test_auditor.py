"""The auditor of the simulator reads what no other client has read."""

from dataclasses import replace

import pytest

from simulator.checks.fetch_checker import CheckedFetch, FetchChecker
from simulator.clients.auditor import Auditor
from simulator.clients.plain_producer import PlainProducer
from simulator.cluster_plan import cluster_plan_of
from simulator.plan import Plan, TopicPlan
from simulator.world import World

ONE_LEADER = 1


def plan() -> Plan:
    """Two brokers and no faults, for clients of one's own."""
    topic = TopicPlan("topic", 1, {"internal.segment.bytes": "8000"}, replication_factor=2)
    return replace(cluster_plan_of(0, nodes=3, scale=0.2), topics=[topic], faults={}, least=None)


def test_the_last_audit_reads_to_the_end_although_nobody_else_has_read_anything() -> None:
    report = World(0, plan(), cast=lambda world: [PlainProducer(world.scene, "producer", ONE_LEADER)]).run()
    assert report.violation is None
    assert report.counts.records_read >= report.counts.records_acknowledged > 0


def test_an_answer_that_says_nothing_has_the_auditor_look_for_the_leader_again(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    check, find = FetchChecker.check, Auditor._find_leaders

    def first_is_outdated(*values: object, **named: object) -> CheckedFetch | None:
        events.append("read" if events.count("outdated") else "outdated")
        return check(*values, **named) if events[-1] == "read" else None  # type: ignore[arg-type]

    async def found(auditor: Auditor) -> None:
        events.append("leaders")
        await find(auditor)

    monkeypatch.setattr(FetchChecker, "check", first_is_outdated)
    monkeypatch.setattr(Auditor, "_find_leaders", found)
    report = World(0, plan(), cast=lambda world: [PlainProducer(world.scene, "producer", ONE_LEADER)]).run()
    assert report.violation is None
    assert events[events.index("outdated") + 1] == "leaders"
