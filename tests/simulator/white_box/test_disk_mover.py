"""An operator of the simulator moves replicas between disks, and sees what is left of a move."""

from dataclasses import replace

import pytest

from simulator.cluster_plan import cluster_plan_of
from simulator.random import SimRandom
from simulator.violation import Violation
from simulator.white_box.disk_mover import ENDS, TWO_DIRECTORIES, DiskMover, mover_settings
from simulator.white_box.happenings import DISK_MOVE, Happenings
from simulator.world import World


def moving_world(seed: int = 3) -> World:
    plan = cluster_plan_of(seed, scale=0.1)
    settings = plan.node_settings | mover_settings(SimRandom(seed))
    return World(seed, replace(plan, moves_disks=True, node_settings=settings, faults={}))


def test_replicas_move_in_a_cluster_without_faults() -> None:
    report = moving_world().run()
    assert report.violation is None
    assert report.happened.get(DISK_MOVE, 0) > 0


def test_half_of_the_seeds_move_replicas_between_two_directories() -> None:
    plans = [cluster_plan_of(seed) for seed in range(40)]
    moving = [plan for plan in plans if plan.moves_disks]
    assert 10 < len(moving) < 30
    assert {plan.node_settings["log.dirs"] for plan in moving} == {TWO_DIRECTORIES}


def test_a_folder_that_a_move_leaves_is_a_violation() -> None:
    world = moving_world()
    assert world.run().violation is None
    mover = DiskMover(world.scene, world.machines, Happenings())
    machine = next(each for each in world.machines if each.is_broker)
    machine.disk.make_dirs(f"/data/a/t-0.{'0' * 32}-future")
    with pytest.raises(Violation, match=ENDS):
        mover.check_folders(machine)
