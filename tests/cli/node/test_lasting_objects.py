"""Lasting objects, those of the start and of added partitions, are hidden from the garbage collector."""

import gc
from collections.abc import Iterator

import pytest

from quire.cli.node.lasting_objects import AT_LEAST, LOOK_EVERY_MS, LastingObjects
from simulator.clock import SimClock


@pytest.fixture(autouse=True)
def collector_as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


def test_partitions_that_are_added_are_not_looked_at_again() -> None:
    clock = SimClock()
    partitions: list[list[int]] = []
    LastingObjects(clock, lambda: len(partitions)).node_is_ready()
    at_start = gc.get_freeze_count()
    assert at_start > 0
    partitions += [[number] for number in range(AT_LEAST)]
    clock.run_for(LOOK_EVERY_MS)
    grown = gc.get_freeze_count()
    assert grown >= at_start + AT_LEAST
    partitions += [[number] for number in range(AT_LEAST)]
    clock.run_for(LOOK_EVERY_MS)
    assert gc.get_freeze_count() <= grown, "a few more do not matter"
    partitions += [[number] for number in range(AT_LEAST)]
    clock.run_for(LOOK_EVERY_MS)
    assert gc.get_freeze_count() >= grown + AT_LEAST
