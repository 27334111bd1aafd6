"""Limits of the node's code that a run makes small: they exist, are small, and are restored afterwards."""

from importlib import import_module

import pytest

from simulator.limits import LIMITS, Limit, applied, small_limits, small_settings
from simulator.plan import plan_of
from simulator.random import SimRandom
from simulator.world import World

SEEDS = range(100)


def value(limit: Limit) -> int:
    return int(getattr(import_module(limit.module), limit.name))


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: f"{limit.module}.{limit.name}")
def test_a_limit_is_smaller_than_usual(limit: Limit) -> None:
    assert limit.low <= limit.high < value(limit)


def test_every_limit_is_drawn_by_some_seed_and_left_at_its_default_by_another() -> None:
    drawn = [small_limits(SimRandom(seed)) for seed in SEEDS]
    for limit in LIMITS:
        values = [each[limit.module, limit.name] for each in drawn if (limit.module, limit.name) in each]
        assert 0 < len(values) < len(SEEDS)
        assert limit.low <= min(values) <= max(values) <= limit.high


def test_settings_too_are_drawn_by_some_seeds() -> None:
    drawn = [small_settings(SimRandom(seed)) for seed in SEEDS]
    for name in {name for each in drawn for name in each}:
        assert 0 < sum(name in each for each in drawn) < len(SEEDS)


def test_limits_are_as_before_after_a_run() -> None:
    before = [value(limit) for limit in LIMITS]
    seed = next(seed for seed in SEEDS if plan_of(seed).limits)
    World(seed, plan_of(seed, scale=0.1)).run()
    assert [value(limit) for limit in LIMITS] == before


def test_limits_are_as_before_after_an_error() -> None:
    limit = LIMITS[0]
    before = value(limit)
    with pytest.raises(ZeroDivisionError), applied({(limit.module, limit.name): limit.low}):
        assert value(limit) == limit.low
        _ = 1 // 0
    assert value(limit) == before
