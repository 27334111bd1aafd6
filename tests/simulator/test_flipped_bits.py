"""Bits flip in closed segments that all other replicas have too; what was damaged is repaired, and never served."""

from dataclasses import replace

from simulator.flipped_bits import FlippedBits
from simulator.main import Kind
from simulator.plan import Plan
from simulator.random import SimRandom
from simulator.world import World

SEEDS = range(3200, 3203)


def flipping(seed: int) -> Plan:
    """Small segments, nothing is deleted, and no other fault."""
    plan = Kind(nodes=3, clusters=True, scale=0.01).plan(seed)
    settings = {"internal.segment.bytes": "4000", "flush.messages": "1", "min.insync.replicas": "1"}
    topics = [replace(topic, settings=settings, replication_factor=3) for topic in plan.topics]
    return replace(
        plan, roles=("broker,controller",) * 3, first_voters=0, changes_voters=False, topics=topics,
        faults={"flipped bit": 1}, fault_pause_ms=400.0, duration_ms=4000.0, keeps_majority=True,
    )  # fmt: skip


def test_damaged_segments_are_repaired_and_every_promise_holds() -> None:
    events: list[str] = []
    for seed in SEEDS:
        report = World(seed, flipping(seed), echo=events.append).run()
        assert report.violation is None, report.violation
        assert report.faults.get("flipped bit", 0) > 0
    assert any("damaged segment repaired" in event for event in events)


def test_each_partition_is_damaged_once_where_all_replicas_have_the_segment() -> None:
    world = World(3200, replace(flipping(3200), faults={}))
    assert world.run().violation is None
    flipped = FlippedBits(world.machines, SimRandom(1))
    folders = []
    while (spot := flipped.choose(world.machine)) is not None:
        folder, _, name = spot.path.rpartition("/")
        folders.append(folder)
        content = [machine.disk.peek(f"{folder}/{name}") for machine in world.machines]
        assert content[0] == content[1] == content[2]
        assert spot.position < len(content[0])
    assert folders and len(folders) == len(set(folders))
