"""Seeds of whole clusters with faults, on every test run: some with clients, some of controllers only.

A failure names the seed and the options of `python -m simulator` that repeat it.
"""

import gc
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.cluster_settings import BOTH, BROKER, CONTROLLER
from simulator.coverage import FEWEST_SEEDS, NEEDED, Coverage
from simulator.main import Kind, summary
from simulator.world import World

CLUSTERS = Kind(clusters=True, scale=0.04)
THREE_NODES = Kind(nodes=3, clusters=True, scale=0.04)
FULL = Kind(clusters=True)
BATCHES = (range(4000, 4020), range(4020, 4040), range(4040, 4060))
"""Of seeds at full length."""
QUORUMS = Kind(quorums=True, scale=0.3)


def run_twice(kind: Kind, seed: int) -> None:
    """Every promise holds, and both runs are the same, event for event."""
    first, second = (World(seed, kind.plan(seed)).run() for _ in range(2))
    assert first.violation is None, summary(first, kind.options)
    assert first.counts.checks > 0
    assert first == second


@pytest.mark.parametrize("seed", range(3000, 3037))
def test_a_quorum_of_controllers_keeps_every_promise_twice_alike(seed: int) -> None:
    run_twice(QUORUMS, seed)


@pytest.mark.parametrize("seed", range(3000, 3003))
def test_a_cluster_keeps_every_promise_twice_alike(seed: int) -> None:
    run_twice(CLUSTERS, seed)


@pytest.mark.parametrize("seed", [seed for batch in BATCHES for seed in batch])
def test_a_cluster_at_full_length_keeps_every_promise_and_its_batch_goes_through_everything(
    seed: int, shared: Path
) -> None:
    """Of seeds in which no log was ever truncated, or no broker fenced, few promises were at stake.

    The workers of a test session share the seeds of a batch; the one that runs the last seed looks at all of them.
    """
    gc.collect()  # the world of an earlier seed takes a hundred megabytes, in cycles
    report = World(seed, FULL.plan(seed)).run()
    assert report.failure is None, summary(report, FULL.options)
    coverage = Coverage()
    coverage.add(report)
    note(shared, seed, happened=[kind for kind in NEEDED if kind not in coverage.missing])
    batch = next(batch for batch in BATCHES if seed in batch)
    noted = [read_note(shared, each) for each in batch]
    if None not in noted:
        happened = {kind for kinds in noted if kinds is not None for kind in kinds}
        missing = [kind for kind in NEEDED if kind not in happened]
        assert not missing, f"none of {batch} had this"


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this test session, the same for all workers."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def note(folder: Path, seed: int, happened: list[str]) -> None:
    part = folder / f"cluster-seed-{seed}.part"
    part.write_text(json.dumps(happened))
    part.rename(part.with_suffix(".json"))


def read_note(folder: Path, seed: int) -> list[str] | None:
    """What happened in a seed, or None if it has not run yet."""
    path = folder / f"cluster-seed-{seed}.json"
    return json.loads(path.read_text()) if path.exists() else None


def test_a_batch_is_large_enough_for_everything_to_happen() -> None:
    assert all(len(batch) >= FEWEST_SEEDS for batch in BATCHES)
    assert sum(len(batch) for batch in BATCHES) == 60


@pytest.mark.parametrize("kind", [THREE_NODES, QUORUMS], ids=["cluster", "quorum"])
def test_another_seed_has_another_digest(kind: Kind) -> None:
    first, second = (World(seed, kind.plan(seed)).run() for seed in (11, 12))
    assert first.digest != second.digest


def test_the_number_of_nodes_is_that_of_the_option_or_the_seed() -> None:
    assert THREE_NODES.plan(5).nodes == 3
    assert {CLUSTERS.plan(seed).nodes for seed in range(60)} == {3, 4, 5}
    assert {QUORUMS.plan(seed).nodes for seed in range(60)} == {3, 4, 5}
    assert Kind().plan(5).nodes == Kind(nodes=1, clusters=True).plan(5).nodes == 1


def test_every_cluster_has_two_brokers_at_least() -> None:
    brokers = {sum(BROKER in role for role in CLUSTERS.plan(seed).roles) for seed in range(300)}
    assert brokers == {2, 3, 4, 5}


def test_seeds_combine_roles_or_separate_them() -> None:
    drawn = {CLUSTERS.plan(seed).roles for seed in range(200)}
    assert {(BOTH,) * 3, (CONTROLLER,) * 3 + (BROKER,) * 2, (BOTH, BROKER, BROKER)} <= drawn
    assert {(CONTROLLER,) * 3, (CONTROLLER,) * 3 + (BROKER,) * 2} <= {QUORUMS.plan(seed).roles for seed in range(60)}


def test_seeds_have_static_and_dynamic_quorums_whose_voters_change_or_not() -> None:
    plans = [QUORUMS.plan(seed) for seed in range(200)]
    assert {0, 1, 2, 3, 5} <= {plan.first_voters for plan in plans}
    drawn = {(plan.first_voters > 0, plan.auto_join, plan.changes_voters) for plan in plans}
    assert len(drawn) == 6, "a static quorum has no auto-join"
    assert {plan.first_voters > 0 for plan in map(CLUSTERS.plan, range(40))} == {True, False}


@pytest.mark.parametrize("first_voters", [0, 1], ids=["static", "dynamic"])
def test_a_quorum_gets_and_loses_voters_and_a_static_one_is_upgraded_before(first_voters: int) -> None:
    plan = replace(
        QUORUMS.plan(3), roles=(CONTROLLER,) * 3, faults={}, first_voters=first_voters, auto_join=False,
        changes_voters=True, duration_ms=10_000.0,
    )  # fmt: skip
    events: list[str] = []
    world = World(3, plan, echo=events.append)
    assert world.run().violation is None
    node = world.machine.node
    assert node is not None
    assert node.metadata.log.kraft_version == 1
    for change in ("add", "remove"):
        assert any(f"voter operator: {change} node-" in event for event in events)


def test_clients_work_with_the_brokers_and_only_controllers_vote() -> None:
    plan = replace(CLUSTERS.plan(1), roles=(CONTROLLER,) * 3 + (BROKER,) * 2, duration_ms=300.0)
    world = World(1, plan)
    assert world.run().violation is None
    assert world.scene.nodes == ["node-4", "node-5"]
    nodes = [machine.node for machine in world.machines]
    assert [node is not None and node.broker is not None for node in nodes] == [False] * 3 + [True] * 2
    assert [node is not None and node.controller is not None for node in nodes] == [True] * 3 + [False] * 2


def test_what_a_node_repeats_comes_less_often_in_a_seed_at_full_length() -> None:
    backoffs = [
        {int(kind.plan(seed).node_settings["log.cleaner.backoff.ms"]) for seed in range(40)}
        for kind in (CLUSTERS, FULL)
    ]
    assert backoffs == [{20, 200, 1000}, {200, 1000}]
