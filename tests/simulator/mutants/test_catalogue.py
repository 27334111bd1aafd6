"""Every mutant changes existing code. `make mutants` checks that the simulator finds each of them."""

import pytest

from simulator.mutants.catalogue import MUTANTS
from simulator.mutants.mutant import Mutant, applied

FEWEST = 25


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= FEWEST


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=list(MUTANTS))
def test_a_mutant_changes_existing_code(mutant: Mutant) -> None:
    with applied(mutant):
        pass
