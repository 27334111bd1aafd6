"""Garbage is collected rarely during a run, and as usual afterwards."""

import gc

import pytest

from simulator.garbage import NEW_OBJECTS, rare_collections


def test_collections_are_rare_until_the_run_ends_however_it_ends() -> None:
    usual, frozen = gc.get_threshold(), gc.get_freeze_count()
    with pytest.raises(ZeroDivisionError), rare_collections():
        assert gc.get_threshold()[0] == NEW_OBJECTS
        assert gc.get_freeze_count() > frozen
        raise ZeroDivisionError
    assert (gc.get_threshold(), gc.get_freeze_count()) == (usual, frozen)
