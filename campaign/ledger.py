"""The ledger of all campaigns: one line of JSON for each batch that has run, oldest first. Lines are only added."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Entry:
    """A batch of runs."""

    date: str
    commit: str
    kind: str
    """`one node`, `clusters`, `quorums`, `mutants` or `jepsen`."""
    mutant: str = ""
    """Which one, by name."""
    first: int = 0
    last: int = -1
    """The seeds that ran; none for a kind without seeds. The last one of a mutant is the seed that found it."""
    held: int = 0
    """How many runs succeeded: a seed whose promises hold, a mutant that is found."""
    broken: list[str] = field(default_factory=list)
    """The runs that failed, each with the command that repeats it."""
    seconds: float = 0.0
    happened: dict[str, int] = field(default_factory=dict)
    """The number of events in the seeds: truncations, elections and so on."""


class Ledger:
    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.entries = [Entry(**json.loads(line)) for line in lines if line]

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(entry)) + "\n")

    def next_seed(self, kind: str) -> int:
        return max((entry.last + 1 for entry in self.entries if entry.kind == kind), default=0)

    def mutants_run(self, commit: str) -> set[str]:
        """The mutants that were looked for on this commit, found or not."""
        return {entry.mutant for entry in self.entries if entry.mutant and entry.commit == commit}

    def totals(self) -> list[str]:
        """For each kind, how many runs succeeded and how many failed."""
        kinds = dict.fromkeys(entry.kind for entry in self.entries)
        lines = []
        for kind in kinds:
            of_kind = [entry for entry in self.entries if entry.kind == kind]
            held, broken = sum(each.held for each in of_kind), sum(len(each.broken) for each in of_kind)
            lines.append(f"{kind}: {held} held, {broken} broken, {sum(each.seconds for each in of_kind) / 3600:.1f} h")
        return lines
