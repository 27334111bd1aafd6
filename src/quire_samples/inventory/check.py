"""The check: the view, the history in the log and the archive in the lake must agree on every item.

Each is computed in a different way. The view uses the level in the last event. The history adds up changes, from the
first event that compaction has left. The lake has every event, so its changes alone must add up, with no sequence
number missing or repeated. The three are read one after another while the inventory runs: the history is added up to
the offsets of the view, and the lake is compared where it ends. Called by `quire-samples inventory check`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from quire_samples.inventory.events import StockEvent
from quire_samples.inventory.stock import Level


class Finding(NamedTuple):
    item: str
    what: str


@dataclass(slots=True)
class Archived:
    """The lake's sums for one item."""

    total: int
    """All changes added up."""
    events: int
    distinct: int
    last_sequence: int
    last_level: int
    missing: list[int] = field(default_factory=list)
    """The first few sequence numbers below the last that are missing."""


class History:
    """Adds up the events of a log that may be compacted: after a gap it continues with the next event's level."""

    def __init__(self, look_for: Mapping[str, int] | None = None) -> None:
        """`look_for` has a sequence number for each item; `found` gets the level after that event."""
        self.levels: dict[str, Level] = {}
        self.found: dict[str, int] = {}
        self.findings: list[Finding] = []
        self.events = 0
        self.compacted = 0
        self._look_for = look_for or {}

    def add(self, event: StockEvent) -> None:
        before = self.levels.get(event.item) or Level()
        steps = event.sequence - before.sequence
        if steps <= 0:
            self._find(event, f"event {event.sequence} comes after event {before.sequence}")
            return
        self.events += 1
        level = before.level + event.change
        if steps > 1:
            self.compacted += steps - 1
            level = event.level
        elif level != event.level:
            self._find(event, f"event {event.sequence} says {event.level}; the changes up to it add up to {level}")
        if level < 0:
            self._find(event, f"event {event.sequence} takes it down to {level}")
        self.levels[event.item] = Level(level, event.sequence)
        if self._look_for.get(event.item) == event.sequence:
            self.found[event.item] = level

    def _find(self, event: StockEvent, what: str) -> None:
        self.findings.append(Finding(event.item, f"history: {what}"))


@dataclass(slots=True)
class Report:
    items: int
    findings: list[Finding]
    behind: int | None = None
    """The number of events that the lake does not have yet; None if no lake was read."""

    @property
    def agrees(self) -> bool:
        return not self.findings


def compare(
    view: Mapping[str, Level], history_at_view: History, history: History, lake: Mapping[str, Archived] | None
) -> Report:
    """`history_at_view` ends at the view's offsets, `history` at the end of the log, which was read after the lake."""
    findings = list(history.findings)
    for item in sorted(view.keys() | history_at_view.levels.keys()):
        findings += _compare_view(item, view.get(item), history_at_view.levels.get(item))
    if lake is None:
        return Report(len(history.levels), findings)
    behind = 0
    for item in sorted(history.levels.keys() | lake.keys()):
        archived, level = lake.get(item), history.levels.get(item)
        if archived is not None:
            findings += _compare_lake(item, archived, level, history.found.get(item))
        # An item that is ahead in the lake is a finding, and does not reduce the number for the others.
        behind += max(0, (level.sequence if level else 0) - (archived.last_sequence if archived else 0))
    return Report(len(history.levels.keys() | lake.keys()), findings, behind)


def _compare_view(item: str, view: Level | None, history: Level | None) -> list[Finding]:
    if view == history:
        return []
    if view is None or history is None:
        missing, other = ("view", history) if view is None else ("history", view)
        assert other is not None
        return [Finding(item, f"the {missing} does not know it; elsewhere it is {other.level}")]
    return [
        Finding(
            item,
            f"the view says {view.level} after event {view.sequence}; "
            f"the history adds up to {history.level} after event {history.sequence}",
        )
    ]


def _compare_lake(item: str, lake: Archived, log: Level | None, level_in_log: int | None) -> list[Finding]:
    """`level_in_log` is the level in the log after the lake's last event; None if compaction has removed that event."""
    findings: list[str] = []
    if lake.missing:
        count = lake.last_sequence - lake.distinct
        named = ", ".join(str(number) for number in lake.missing)
        findings.append(f"{count} of events 1 to {lake.last_sequence} are missing, the first: {named}")
    if lake.events != lake.distinct:
        findings.append(f"{lake.events - lake.distinct} events are there more than once")
    if lake.total != lake.last_level:
        findings.append(
            f"the changes add up to {lake.total}; its last event, {lake.last_sequence}, says {lake.last_level}"
        )
    if level_in_log is not None and level_in_log != lake.total:
        findings.append(f"the changes add up to {lake.total}; the history is at {level_in_log} after the same event")
    if log is None:
        findings.append("the log has no event of it")
    elif lake.last_sequence > log.sequence:
        findings.append(f"it has event {lake.last_sequence}; the log ends with event {log.sequence}")
    return [Finding(item, f"lake: {finding}") for finding in findings]
