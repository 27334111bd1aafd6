"""A seed goes through a minimum of time, writes and faults, or reports what it had too little of."""

from dataclasses import replace

import pytest

from simulator import world as world_module
from simulator.least import Least
from simulator.main import Kind, summary
from simulator.plan import Plan
from simulator.world import World


def short_plan(least: Least) -> Plan:
    plan = Kind(clusters=True, scale=0.01).plan(3)
    return replace(plan, duration_ms=100.0, faults={"broken connections": 1}, fault_pause_ms=100.0, least=least)


def test_what_there_was_too_little_of_is_listed() -> None:
    least = Least(seconds=60.0, writes=2000, faults=10)
    assert least.lacks(60.0, 2000, 10) is None
    assert least.lacks(61.0, 1999, 10) == "1999 acknowledged writes instead of 2000"
    assert least.lacks(59.0, 2000, 9) == "59 seconds with faults instead of 60, 9 faults that took effect instead of 10"


def test_clients_rest_longer_while_they_are_ahead_of_what_is_needed_and_less_while_they_are_behind() -> None:
    least = Least(seconds=60.0, writes=2000, faults=10)
    assert least.pace(30.0, 1000) == least.pace(0.0, 0) == 1.0
    assert least.pace(30.0, 1200) > 1.0
    assert least.pace(30.0, 990) < 1.0
    assert least.pace(70.0, 2000) == 1.0, "no more is needed later"


def test_a_lull_is_needed_while_there_are_too_few_writes_and_enough_faults() -> None:
    least = Least(seconds=60.0, writes=2000, faults=10)
    assert least.needs_lull(30.0, 999, 5)
    assert not least.needs_lull(30.0, 1000, 5)
    assert not least.needs_lull(30.0, 999, 4)
    assert least.needs_lull(70.0, 1999, 10)


def test_a_run_lasts_until_it_has_gone_through_enough() -> None:
    report = World(3, short_plan(Least(0.2, 40, 3))).run()
    assert report.failure is None
    assert report.attacked_ms >= 1000
    assert report.counts.writes_acknowledged >= 40
    assert sum(report.faults.values()) >= 3


def test_a_run_that_has_not_is_no_success_although_every_promise_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world_module, "ATTACK_LIMIT_MS", 1000.0)
    report = World(3, short_plan(Least(0.1, 1, 10_000))).run()
    assert report.violation is None
    assert report.lacks is not None and "faults that took effect instead of 10000" in report.lacks
    assert report.failure == f"too little happened: {report.lacks}"
    assert f"TOO LITTLE with seed 3: {report.lacks}" in summary(report, "")


def test_clusters_at_full_length_have_a_minimum_and_others_do_not() -> None:
    assert Kind(clusters=True).plan(1).least == Least(seconds=60.0, writes=2000, faults=10)
    assert Kind(nodes=3).plan(1).least == Kind(clusters=True).plan(1).least
    for kind in (Kind(clusters=True, scale=0.5), Kind(), Kind(quorums=True)):
        assert kind.plan(1).least is None
