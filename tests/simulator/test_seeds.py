"""A few dozen seeds of a whole node with faults, on every test run; `make soak` runs thousands.

A failure names the seed, the promise and what led up to it, and `python -m simulator --seed N` repeats it.
"""

import json
import subprocess
import sys

import pytest

from simulator.main import Kind, summary
from simulator.plan import plan_of
from simulator.world import World

SEEDS = range(1000, 1040)
SCALE = 0.7


@pytest.mark.parametrize("seed", SEEDS)
def test_every_promise_holds(seed: int) -> None:
    outcome = World(seed, plan_of(seed, scale=SCALE)).run()
    assert outcome.violation is None, summary(outcome, Kind(scale=SCALE).options)
    assert outcome.counts.checks > 0


def test_a_seed_run_twice_has_the_same_digest() -> None:
    first, second, other = (World(seed, plan_of(seed, scale=0.5)).run() for seed in (3, 3, 4))
    assert first == second
    assert first.digest != other.digest


def test_the_order_of_hashes_does_not_matter() -> None:
    outcomes = []
    for hash_seed in ("0", "1"):
        code = "import sys; from simulator.main import command; command(sys.argv[1:])"
        ran = subprocess.run(
            [sys.executable, "-c", code, "--seed", "5", "--scale", "0.3", "--json"],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        )
        outcomes.append(json.loads(ran.stdout))
    assert outcomes[0] == outcomes[1]
