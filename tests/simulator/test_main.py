"""The command: its output for one run, for several, and for a broken promise."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from simulator.main import command
from simulator.plan import plan_of
from simulator.violation import Violation
from simulator.world import World

ROOT = Path(__file__).resolve().parents[2]


def simulate(*arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments, "--scale", "0.1"])


def test_one_seed_is_summed_up_with_its_digest() -> None:
    result = simulate("--seed", "1")
    assert result.exit_code == 0
    assert "seed 1:" in result.output
    assert World(1, plan_of(1, scale=0.1)).run().digest in result.output
    assert "every promise holds" in result.output


def run_as_a_module(*arguments: str) -> str:
    command_line = [sys.executable, "-m", "simulator", *arguments]
    return subprocess.run(command_line, cwd=ROOT, env={}, capture_output=True, check=True, text=True).stdout


def test_the_module_says_the_same_in_any_environment() -> None:
    assert run_as_a_module("--seed", "1", "--scale", "0.1") == simulate("--seed", "1").stdout


def test_the_module_calls_itself_by_the_command_that_runs_it() -> None:
    assert run_as_a_module("--help").startswith("Usage: python -m simulator ")


def test_several_seeds_are_counted() -> None:
    result = simulate("--seeds", "2-3")
    assert result.exit_code == 0
    assert "2 seeds hold" in result.output


def test_json_is_one_line_for_each_seed() -> None:
    result = simulate("--seeds", "2", "--json")
    outcomes = [json.loads(line) for line in result.stdout.splitlines()]
    assert [outcome["seed"] for outcome in outcomes] == [0, 1]
    assert outcomes[0]["violation"] is None


def test_a_broken_promise_ends_the_command_with_the_seed_the_promise_and_what_led_up_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(self: World) -> None:
        raise Violation("everything holds", "nothing does")

    monkeypatch.setattr(World, "_finish_work", broken)
    result = simulate("--seeds", "7-9")
    assert result.exit_code == 1
    assert "BROKEN with seed 7: everything holds: nothing does" in result.output
    assert "python -m simulator --seed 7 --scale 0.1" in result.output
    assert "the node serves, life " in result.output


def test_every_event_is_shown_on_request() -> None:
    result = simulate("--seed", "1", "--trace")
    assert "disk 1 " in result.output


@pytest.mark.parametrize("arguments", [(), ("--seed", "1", "--seeds", "2"), ("--seeds", "many")])
def test_an_invalid_command_line_is_refused(arguments: tuple[str, ...]) -> None:
    assert simulate(*arguments).exit_code == 2
