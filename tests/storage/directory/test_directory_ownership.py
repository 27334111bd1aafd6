"""A data directory belongs to one process, one cluster and one node."""

import errno
from contextlib import suppress

import pytest

from quire.storage.directory.meta_properties import MetaProperties
from quire.storage.errors import DataDirectoryError
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom
from tests.storage.directory.directory_world import META, World, open_at


def test_only_one_process_may_use_it(world: World) -> None:
    first = world.open()
    with pytest.raises(DataDirectoryError, match="another process"):
        world.open()
    first.close()
    world.open()


def test_a_directory_that_cannot_be_created_is_refused(world: World) -> None:
    world.disk.fail_when(lambda operation: operation.kind == "make_dir", errno.EROFS)
    with pytest.raises(DataDirectoryError, match=r"log\.dirs"):
        world.open()


def test_formatting_says_whose_it_is_and_lasts(world: World) -> None:
    directory = world.open()
    assert directory.meta is None
    directory.format(META)
    assert world.lost_power().meta == META


@pytest.mark.parametrize("killed_at", range(1, 8))
@pytest.mark.parametrize("seed", range(5))
def test_a_start_that_was_killed_while_creating_folders_takes_nothing_from_the_next(killed_at: int, seed: int) -> None:
    disk = SimDisk(crash_at=killed_at)
    with suppress(Crashed):
        open_at(disk, "srv/quire/data").format(META)
    disk = disk.kill()
    open_at(disk, "srv/quire/data").format(META)
    assert open_at(disk.crash(SimRandom(seed)), "srv/quire/data").meta == META


def test_formatting_again_must_agree(world: World) -> None:
    directory = world.open()
    directory.format(META)
    directory.format(MetaProperties(META.cluster_id, 7, bytes(16)))
    assert directory.meta == META
    with pytest.raises(DataDirectoryError, match="belongs to node 7"):
        directory.format(MetaProperties(META.cluster_id, 8, META.directory_id))
