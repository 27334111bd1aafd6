"""Bits flip in closed segments that all other replicas have too; damaged batches are repaired, and never served."""

from dataclasses import replace

import pytest

from simulator.flipped_bits import FlippedBits
from simulator.main import Kind
from simulator.plan import Plan
from simulator.random import SimRandom
from simulator.world import World

SEEDS = range(3202, 3210)


def flipping(seed: int) -> Plan:
    """Small segments, nothing is deleted or moved, and no other fault."""
    plan = Kind(nodes=3, clusters=True, scale=0.01).plan(seed)
    settings = {"internal.segment.bytes": "4000", "flush.messages": "1", "min.insync.replicas": "1"}
    topics = [replace(topic, settings=settings, replication_factor=3) for topic in plan.topics]
    return replace(
        plan, roles=("broker,controller",) * 3, first_voters=0, changes_voters=False, topics=topics,
        faults={"flipped bits": 1, "clean stop": 1}, fault_pause_ms=500.0, duration_ms=8000.0, keeps_majority=True,
        reassigns=False, moves_disks=False,
    )  # fmt: skip


def test_damaged_segments_are_repaired_and_every_promise_holds() -> None:
    """In at least one of several seeds, because damage is found only if the replica is read."""
    for seed in SEEDS:
        events: list[str] = []
        report = World(seed, flipping(seed), echo=events.append).run()
        assert report.violation is None, report.violation
        if any("damaged segment repaired" in event for event in events):
            return
    pytest.fail(f"nothing was repaired in any of {SEEDS}")


def test_each_partition_is_damaged_once_where_all_replicas_have_the_segment() -> None:
    world = World(SEEDS[0], replace(flipping(SEEDS[0]), faults={}))
    assert world.run().violation is None
    flipped = FlippedBits(world.machines, SimRandom(1), world.scene.moving, world.scene.damaged)
    damaged: list[str] = []
    while spots := flipped.choose(world.machine):
        for spot in spots:
            folder, _, name = spot.path.rpartition("/")
            damaged.append(folder)
            sizes = [len(machine.disk.peek(spot.path)) for machine in world.machines]
            assert sizes[0] == sizes[1] == sizes[2] > spot.position or "/__" in folder, name
    assert damaged and len(damaged) == len(set(damaged))
