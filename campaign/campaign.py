"""What a campaign runs: batches of seeds of every kind in turn, then the next ones, until its time is up.

Mutants run once for each commit, before the seeds if they are asked for. The outside judge is any command whose exit
code says whether it is content; it runs between two rounds of seeds.
"""

import gc
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from campaign.ledger import Entry, Ledger
from simulator.coverage import Coverage
from simulator.main import COMMAND, Kind
from simulator.mutants.catalogue import MUTANTS
from simulator.mutants.hunt import hunt
from simulator.world import World

KINDS = {"one node": Kind(), "clusters": Kind(clusters=True), "quorums": Kind(quorums=True)}
MUTANT_KIND, JUDGE_KIND = "mutants", "jepsen"

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

    @property
    def has_time(self) -> bool:
        return time.monotonic() < self.until

    def run(self, *, mutants: bool, judge: str | None) -> int:
        """Returns how many runs were not as they should be."""
        broken = 0
        if mutants and not self.ledger.has_run(MUTANT_KIND, self.commit):
            broken += self._record(MUTANT_KIND, self._mutants)
        while self.has_time:
            for name, kind in KINDS.items():
                if self.has_time:
                    broken += self._record(name, partial(self._seeds, kind))
            if judge is not None and self.has_time:
                broken += self._record(JUDGE_KIND, partial(self._judge, judge))
        return broken

    def _record(self, name: str, runs: Callable[[Entry], None]) -> int:
        """Adds what has run to the ledger, also if the campaign is interrupted."""
        started = time.monotonic()
        entry = Entry(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), self.commit, name)
        try:
            runs(entry)
        finally:
            entry.seconds = round(time.monotonic() - started, 1)
            if entry.held or entry.broken:
                self.ledger.add(entry)
                self.say(f"{name}: {entry.held} held, {len(entry.broken)} broken, {entry.seconds:.0f} s")
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
                coverage.add(report)
                if report.violation is None:
                    entry.held += 1
                else:
                    entry.broken.append(f"{COMMAND} --seed {seed}{kind.options}: {report.violation}")
                    self.say(entry.broken[-1])
        finally:
            entry.happened = coverage.counts

    def _mutants(self, entry: Entry) -> None:
        for mutant in MUTANTS.values():
            if not self.has_time:
                break
            if hunt(mutant) is None:
                entry.broken.append(f"python -m simulator.mutants '{mutant.name}': not found")
                self.say(entry.broken[-1])
            else:
                entry.held += 1

    def _judge(self, command: str, entry: Entry) -> None:
        ended = subprocess.run(command, shell=True, capture_output=True, text=True)
        if ended.returncode == 0:
            entry.held += 1
        else:
            last = (ended.stdout + ended.stderr).strip().splitlines()[-1:]
            entry.broken.append(f"exit code {ended.returncode}: {' '.join(last)[:300]}")
            self.say(entry.broken[-1])
