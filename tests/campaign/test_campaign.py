"""A campaign resumes where the last one ended, and records what has run."""

import time
from functools import partial
from pathlib import Path

import pytest

from campaign import campaign as module
from campaign.campaign import Campaign
from campaign.ledger import Entry, Ledger
from simulator.main import Kind


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def campaign(path: Path, *, batch: int = 1, seconds: float = 60.0) -> Campaign:
    return Campaign(Ledger(path), "abc", time.monotonic() + seconds, batch, lambda _: None)


def test_a_ledger_says_which_seed_is_next_of_each_kind(path: Path) -> None:
    ledger = Ledger(path)
    assert ledger.next_seed("clusters") == 0
    ledger.add(Entry("2026-01-01", "abc", "clusters", 0, 19, held=20))
    ledger.add(Entry("2026-01-01", "abc", "one node", 0, 4, held=4, broken=["seed 3"]))
    again = Ledger(path)
    assert (again.next_seed("clusters"), again.next_seed("one node"), again.next_seed("quorums")) == (20, 5, 0)
    assert again.has_run("clusters", "abc") and not again.has_run("clusters", "def")
    assert again.totals()[1] == "one node: 4 held, 1 broken, 0.0 h"


def test_seeds_run_once_and_are_recorded(path: Path) -> None:
    first = campaign(path)
    first._record("one node", partial(first._seeds, Kind(scale=0.02)))
    second = campaign(path)
    second._record("one node", partial(second._seeds, Kind(scale=0.02)))
    assert [(each.first, each.last, each.held) for each in Ledger(path).entries] == [(0, 0, 1), (1, 1, 1)]


def test_a_campaign_without_time_runs_nothing(path: Path) -> None:
    assert campaign(path, seconds=0).run(mutants=True, judge="false") == 0
    assert Ledger(path).entries == []


def test_a_judge_that_is_not_content_is_recorded_with_its_last_line(path: Path) -> None:
    one = campaign(path)
    assert one._record(module.JUDGE_KIND, partial(one._judge, "echo a; echo 'lost 3'; exit 2")) == 1
    assert Ledger(path).entries[0].broken == ["exit code 2: lost 3"]
    assert one._record(module.JUDGE_KIND, partial(one._judge, "true")) == 0


def test_what_ran_before_an_interruption_is_recorded(path: Path) -> None:
    def runs(entry: Entry) -> None:
        entry.held = 3
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        campaign(path)._record("clusters", runs)
    assert Ledger(path).entries[0].held == 3
