"""The faults of the network: which hosts a partition separates, and that each one heals by itself."""

from collections.abc import Callable
from itertools import permutations

import pytest

from simulator.fault_counts import unnoticed
from simulator.network_faults import NetworkFaults
from simulator.random import SimRandom
from simulator.world import World

NODES = ["node-1", "node-2", "node-3", "node-4"]


def faults_of(seed: int) -> tuple[NetworkFaults, World, list[Callable[[], None]]]:
    world = World(0, cast=lambda _: [])
    ends: list[Callable[[], None]] = []
    faults = NetworkFaults(
        world.scene,
        NODES,
        ["client"],
        SimRandom(seed),
        lambda _kind, _line: unnoticed,
        lambda _delay, action: ends.append(action),
    )
    return faults, world, ends


@pytest.mark.parametrize("seed", range(30))
def test_a_partition_separates_the_node_from_some_other_and_heals(seed: int) -> None:
    faults, world, ends = faults_of(seed)
    network = world.scene.network
    faults.partition("node-2")
    cut = [pair for pair in permutations(NODES, 2) if network.is_cut(*pair)]
    assert any("node-2" in pair for pair in cut) or not cut, "a half may be everyone"
    assert not network.is_cut("client", "node-2")
    for end in ends:
        end()
    assert faults.partitioned == set()


def test_overlapping_partitions_end_one_after_the_other() -> None:
    faults, world, ends = faults_of(4)
    for node in NODES:
        faults.partition(node)
    assert len(world.scene.network.partitions) == 4
    for number, end in enumerate(ends, 1):
        end()
        assert len(world.scene.network.partitions) == 4 - number


def test_slow_links_are_between_nodes_only_and_end() -> None:
    for seed in range(10):
        faults, world, ends = faults_of(seed)
        network = world.scene.network
        faults.slow_down("node-2")
        slow = [pair for pair in permutations(NODES, 2) if network.latency_between(*pair) > 5.0]
        assert any("node-2" in pair for pair in slow) or not slow, "a half may be everyone"
        assert network.latency_between("client", "node-2") < 5.0
        for end in ends:
            end()
        assert not [pair for pair in permutations(NODES, 2) if network.latency_between(*pair) > 5.0]
