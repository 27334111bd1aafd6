"""What a campaign runs: batches of seeds of every kind in turn, then the next ones, until its time is up.

Mutants run once for each commit, before the seeds if they are asked for; each is recorded by itself, so the next
campaign continues with those that are left. The outside judge is any command; its exit code says whether it found a
fault. It runs between two batches of seeds. Cluster seeds must also have tested something: if some kind of event
happened in none of them, that is recorded as broken too (`simulator.coverage`).
"""

import gc
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from campaign.ledger import Entry, Ledger
from simulator.coverage import FEWEST_SEEDS, Coverage
from simulator.main import COMMAND, Kind
from simulator.mutants.catalogue import MUTANTS
from simulator.mutants.hunt import MOST_SEEDS, hunt
from simulator.mutants.mutant import Mutant
from simulator.world import World

KINDS = {"one node": Kind(), "clusters": Kind(clusters=True), "quorums": Kind(quorums=True)}
MUTANT_KIND, JUDGE_KIND = "mutants", "jepsen"
CHANGED = "+"
"""After the name of a commit: files were changed since, so these runs say nothing about the commit."""

Say = Callable[[str], None]


@dataclass(slots=True)
class Campaign:
    ledger: Ledger
    commit: str
    until: float
    """When to begin no further run, on the monotonic clock."""
    batch: int
    """Seeds of one kind before the next one has its turn."""
    say: Say
    _coverage: dict[Kind, tuple[int, Coverage]] = field(default_factory=dict)
    """Of the seeds since the last judgement, with the first of them."""

    @property
    def has_time(self) -> bool:
        return time.monotonic() < self.until

    def run(self, *, mutants: bool, judge: str | None) -> int:
        """Returns how many runs failed."""
        broken = 0
        if mutants:
            broken += self._mutants()
        while self.has_time:
            for name, kind in KINDS.items():
                if self.has_time:
                    broken += self._record(name, partial(self._seeds, kind))
            if judge is not None and self.has_time:
                broken += self._record(JUDGE_KIND, partial(self._judge, judge))
        return broken

    def _record(self, name: str, runs: Callable[[Entry], None], mutant: str = "") -> int:
        """Adds what has run to the ledger, also if the campaign is interrupted."""
        started = time.monotonic()
        entry = Entry(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), self.commit, name, mutant)
        try:
            runs(entry)
        finally:
            entry.seconds = round(time.monotonic() - started, 1)
            if entry.held or entry.broken:
                self.ledger.add(entry)
                what = f"{name}, {mutant}" if mutant else name
                self.say(f"{what}: {entry.held} held, {len(entry.broken)} broken, {entry.seconds:.0f} s")
        return len(entry.broken)

    def _seeds(self, kind: Kind, entry: Entry) -> None:
        entry.first = self.ledger.next_seed(entry.kind)
        coverage = Coverage()
        try:
            for seed in range(entry.first, entry.first + self.batch):
                if not self.has_time:
                    break
                gc.collect()
                report = World(seed, kind.plan(seed)).run()
                entry.last = seed
                for each in (coverage, self._unjudged(kind, seed)):
                    each.add(report)
                if report.failure is None:
                    entry.held += 1
                else:
                    entry.broken.append(f"{COMMAND} --seed {seed}{kind.options}: {report.failure}")
                    self.say(entry.broken[-1])
        finally:
            entry.happened = coverage.counts
        self._judge_coverage(kind, entry)

    def _unjudged(self, kind: Kind, seed: int) -> Coverage:
        """Of the seeds of a kind since the last judgement, which may be from several batches; `seed` is the next."""
        return self._coverage.setdefault(kind, (seed, Coverage()))[1]

    def _judge_coverage(self, kind: Kind, entry: Entry) -> None:
        """Breaks the entry if 20 seeds or more had none of some kind of event."""
        first, coverage = self._coverage.get(kind, (entry.first, Coverage()))
        if coverage.seeds < FEWEST_SEEDS:
            return
        del self._coverage[kind]
        if kind.is_replicated and coverage.missing:
            again = f"{COMMAND} --seeds {first}-{entry.last}{kind.options}"
            entry.broken.append(f"{again}: none of these seeds had: {', '.join(coverage.missing)}")
            self.say(entry.broken[-1])

    def _mutants(self) -> int:
        done = set() if self.commit.endswith(CHANGED) else self.ledger.mutants_run(self.commit)
        broken = 0
        for mutant in MUTANTS.values():
            if mutant.name not in done and self.has_time:
                broken += self._record(MUTANT_KIND, partial(self._mutant, mutant), mutant.name)
        return broken

    def _mutant(self, mutant: Mutant, entry: Entry) -> None:
        """Hunts without a time limit: a mutant that was not tried with every seed is neither found nor missed."""
        caught = hunt(mutant)
        if caught is None:
            entry.last = MOST_SEEDS - 1
            entry.broken.append(f"python -m simulator.mutants '{mutant.name}': not found")
            self.say(entry.broken[-1])
        else:
            entry.last = caught.seed
            entry.held = 1

    def _judge(self, command: str, entry: Entry) -> None:
        ended = subprocess.run(command, shell=True, capture_output=True, text=True)
        if ended.returncode == 0:
            entry.held += 1
        else:
            last = (ended.stdout + ended.stderr).strip().splitlines()[-1:]
            entry.broken.append(f"exit code {ended.returncode}: {' '.join(last)[:300]}")
            self.say(entry.broken[-1])
