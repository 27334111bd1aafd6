"""A sample of the mutants, from seeds that are known to show them; `make mutants` looks for all.

If the plans or the code have changed so that a seed no longer shows its mutant, the next ones are tried.
"""

import pytest

from quire.raft.replicas import VoterSet
from simulator.main import Kind
from simulator.mutants import hunt as module
from simulator.mutants.catalogue import MUTANTS
from simulator.mutants.hunt import Caught, RealCode, hunt
from simulator.mutants.mutant import Mutant

SAMPLE = {
    "a vote is not synced before it is sent": 0,
    "acks=all is answered before the high watermark": 0,
    "a new producer gets the epoch of the one before": 0,
    "segments are not synced": 0,
}
MOST_SEEDS = 20
HALF = Mutant("half", "quire.raft.replicas:VoterSet.majority", "// 2 + 1", "// 2")


@pytest.fixture(scope="module")
def real_code() -> RealCode:
    return RealCode()


@pytest.mark.parametrize(("name", "first"), SAMPLE.items(), ids=list(SAMPLE))
def test_the_checks_for_the_real_code_find_a_mutant(name: str, first: int, real_code: RealCode) -> None:
    caught = hunt(MUTANTS[name], range(first, first + MOST_SEEDS), real_code)
    assert not real_code.broken
    assert caught is not None


def test_a_seed_that_breaks_the_real_code_too_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    real, ran = {2: "the real code is broken"}, []

    def violation(kind: Kind, seed: int) -> str | None:
        is_mutated = VoterSet.of_ids((1, 2, 3, 4)).majority == 2
        ran.append((seed, is_mutated))
        return "found" if is_mutated and seed >= 2 else real.get(seed)

    monkeypatch.setattr(module, "_violation", violation)
    real_code = RealCode()
    assert hunt(HALF, range(1, 9), real_code) == Caught(3, 3, "found")
    assert ran == [(1, True), (2, True), (2, False), (3, True), (3, False)]
    assert real_code.broken == ["python -m simulator --seed 2 --clusters --scale 0.2: the real code is broken"]
    assert hunt(HALF, range(2, 3), real_code) is None
    assert ran[5:] == [(2, True)], "the real code runs once with each seed"
