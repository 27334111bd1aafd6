"""Inputs that have caused faults before."""

from pathlib import Path

import pytest

from tests.fuzz.victim import Victim

SAVED = sorted((Path(__file__).parent / "saved").glob("*.hex"))


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_a_saved_input_is_harmless(victim: Victim, path: Path) -> None:
    for line in path.read_text().splitlines():
        victim.throw(bytes.fromhex(line))
        victim.assert_unharmed()


def test_saved_inputs_are_where_they_are_looked_for() -> None:
    assert SAVED, "saved/ holds at least the examples it began with"
