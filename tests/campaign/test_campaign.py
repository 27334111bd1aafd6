"""A campaign resumes where the last one ended, and records what has run."""

import time
from functools import partial
from pathlib import Path

import pytest

from campaign import campaign as module
from campaign.campaign import Campaign
from campaign.ledger import Entry, Ledger
from simulator.coverage import ABORT, NEEDED
from simulator.ledger import Counts
from simulator.main import Kind
from simulator.mutants.hunt import Caught
from simulator.mutants.mutant import Mutant
from simulator.report import RunReport
from simulator.white_box.happenings import TRUNCATION


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def campaign(path: Path, *, batch: int = 1, seconds: float = 60.0, commit: str = "abc") -> Campaign:
    return Campaign(Ledger(path), commit, time.monotonic() + seconds, batch, lambda _: None)


def test_a_ledger_says_which_seed_is_next_of_each_kind(path: Path) -> None:
    ledger = Ledger(path)
    assert ledger.next_seed("clusters") == 0
    ledger.add(Entry("2026-01-01", "abc", "clusters", "", 0, 19, held=20))
    ledger.add(Entry("2026-01-01", "abc", "one node", "", 0, 4, held=4, broken=["seed 3"]))
    again = Ledger(path)
    assert (again.next_seed("clusters"), again.next_seed("one node"), again.next_seed("quorums")) == (20, 5, 0)
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


FIRST, SECOND, THIRD = [Mutant(name, "", "", "") for name in ("first", "second", "third")]


def test_a_mutant_is_recorded_when_it_has_run_and_the_next_campaign_looks_for_the_others(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hunted = hunt_in_vain_for(monkeypatch, "second")
    with pytest.raises(KeyboardInterrupt):
        campaign(path).run(mutants=True, judge=None)
    assert hunted == ["first", "second"]
    assert [(each.mutant, each.last, each.held) for each in Ledger(path).entries] == [("first", 7, 1)]

    hunted = hunt_in_vain_for(monkeypatch)
    assert campaign(path)._mutants() == 1
    assert hunted == ["second", "third"]
    assert Ledger(path).entries[-1].broken == ["python -m simulator.mutants 'third': not found"]
    assert campaign(path)._mutants() == 0, "all have run on this commit"
    assert hunted == ["second", "third"]


def test_mutants_run_again_on_another_commit_and_on_changed_code(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hunted = hunt_in_vain_for(monkeypatch)
    for commit in ("abc", "def", "def+", "def+"):
        campaign(path, commit=commit)._mutants()
    assert hunted == ["first", "second", "third"] * 4


def hunt_in_vain_for(monkeypatch: pytest.MonkeyPatch, interrupted: str = "") -> list[str]:
    """Seed 7 shows every mutant but the third. Returns the list of those that were looked for."""
    hunted: list[str] = []

    def hunt(mutant: Mutant) -> Caught | None:
        hunted.append(mutant.name)
        if mutant.name == interrupted:
            raise KeyboardInterrupt
        return None if mutant is THIRD else Caught(7, 8, "a promise")

    monkeypatch.setattr(module, "MUTANTS", {each.name: each for each in (FIRST, SECOND, THIRD)})
    monkeypatch.setattr(module, "hunt", hunt)
    return hunted


CLUSTERS = Kind(clusters=True)


def batch_of(one: Campaign, first: int, last: int, *kinds: str, kind: Kind = CLUSTERS) -> list[str]:
    """What is broken in a batch of seeds in which these kinds of events happened."""
    entry = Entry("2026-01-01", "abc", "clusters", "", first, last)
    counts = Counts(transactions_aborted=int(ABORT in kinds))
    for seed in range(first, last + 1):
        one._unjudged(kind, seed).add(RunReport(seed, "", 0, 0.0, 1, {}, counts, dict.fromkeys(kinds, 1)))
    one._judge_coverage(kind, entry)
    return entry.broken


def test_a_batch_of_clusters_in_which_something_never_happened_is_broken(path: Path) -> None:
    broken = batch_of(campaign(path), 40, 59, *(each for each in NEEDED if each != TRUNCATION))
    assert broken == [f"python -m simulator --seeds 40-59 --clusters: none of these seeds had: {TRUNCATION}"]


def test_a_batch_in_which_everything_happened_holds(path: Path) -> None:
    assert batch_of(campaign(path), 40, 59, *NEEDED) == []


def test_small_batches_are_judged_together(path: Path) -> None:
    one = campaign(path)
    assert batch_of(one, 0, 7, *NEEDED) == []
    assert batch_of(one, 8, 15) == []
    assert batch_of(one, 16, 23) == [], "the first has everything"
    assert batch_of(one, 24, 31) == [], "too small"
    (broken,) = batch_of(one, 32, 43)
    assert broken.startswith("python -m simulator --seeds 24-43 --clusters: none")


def test_what_happens_in_one_node_or_in_quorums_is_not_judged(path: Path) -> None:
    for kind in (Kind(), Kind(quorums=True)):
        assert batch_of(campaign(path), 0, 19, kind=kind) == []


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
