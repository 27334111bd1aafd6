"""Garbage is collected rarely during a run, and as usual afterwards."""

import gc
import weakref

import pytest

from simulator.garbage import NEW_OBJECTS, RUNS_PER_COLLECTION, rare_collections


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_collections_are_rare_until_the_run_ends_however_it_ends() -> None:
    usual, frozen = gc.get_threshold(), gc.get_freeze_count()
    with pytest.raises(ZeroDivisionError), rare_collections():
        assert gc.get_threshold()[0] == NEW_OBJECTS
        assert gc.get_freeze_count() > frozen
        raise ZeroDivisionError
    assert (gc.get_threshold(), gc.get_freeze_count()) == (usual, frozen)


def test_what_earlier_runs_leave_behind_does_not_pile_up() -> None:
    left = []
    for _ in range(3 * RUNS_PER_COLLECTION):
        with rare_collections():
            left.append(weakref.ref(Cycle()))
    assert sum(each() is not None for each in left) <= RUNS_PER_COLLECTION
