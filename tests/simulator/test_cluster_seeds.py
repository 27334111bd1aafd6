"""Seeds of whole clusters with faults, on every test run: some with clients, some of controllers only.

A failure names the seed and the options of `python -m simulator` that repeat it.
"""

import pytest

from simulator.main import Kind, summary
from simulator.world import RunReport, World

CLUSTERS = Kind(clusters=True, scale=0.4)
THREE_NODES = Kind(nodes=3, scale=0.4)
QUORUMS = Kind(quorums=True, scale=0.6)


def run(kind: Kind, seed: int) -> RunReport:
    outcome = World(seed, kind.plan(seed)).run()
    assert outcome.violation is None, summary(outcome, kind.options)
    assert outcome.counts.checks > 0
    return outcome


@pytest.mark.parametrize("seed", range(3000, 3012))
def test_a_quorum_of_controllers_keeps_every_promise(seed: int) -> None:
    run(QUORUMS, seed)


@pytest.mark.parametrize("seed", range(3000, 3004))
def test_a_cluster_of_three_nodes_keeps_every_promise(seed: int) -> None:
    run(THREE_NODES, seed)


@pytest.mark.parametrize("seed", range(3000, 3003))
def test_a_cluster_of_any_size_keeps_every_promise(seed: int) -> None:
    run(CLUSTERS, seed)


@pytest.mark.parametrize("kind", [THREE_NODES, QUORUMS], ids=["cluster", "quorum"])
def test_a_seed_of_a_cluster_run_twice_has_the_same_digest(kind: Kind) -> None:
    short = kind._replace(scale=0.2)
    first, second, other = (World(seed, short.plan(seed)).run() for seed in (11, 11, 12))
    assert first == second
    assert first.digest != other.digest


def test_the_number_of_nodes_is_that_of_the_option_or_the_seed() -> None:
    assert THREE_NODES.plan(5).nodes == 3
    assert {CLUSTERS.plan(seed).nodes for seed in range(60)} == {1, 2, 3, 4, 5}
    assert {QUORUMS.plan(seed).nodes for seed in range(60)} == {3, 5}
    assert Kind().plan(5).nodes == 1
