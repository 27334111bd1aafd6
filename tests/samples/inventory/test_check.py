"""The check finds every kind of difference, and reports none if all agree."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire_samples.inventory.check import Archived, History, Report, compare
from quire_samples.inventory.events import StockEvent
from quire_samples.inventory.stock import Level, fold
from tests.samples.inventory.histories import history

EVENTS = history(("pen", 5), ("ink", 2), ("pen", -3), ("ink", 4), ("pen", 1))


def added_up(events: list[StockEvent], look_for: dict[str, int] | None = None) -> History:
    adding = History(look_for)
    for event in events:
        adding.add(event)
    return adding


def lake_of(events: list[StockEvent]) -> dict[str, Archived]:
    """The sums of a table with these rows."""
    items: dict[str, Archived] = {}
    for item in {event.item: None for event in events}:
        own = [event for event in events if event.item == item]
        last = max(own, key=lambda event: event.sequence)
        there = {event.sequence for event in own}
        items[item] = Archived(
            total=sum(event.change for event in own),
            events=len(own),
            distinct=len(there),
            last_sequence=last.sequence,
            last_level=last.level,
            missing=[number for number in range(1, last.sequence) if number not in there],
        )
    return items


def check(log: list[StockEvent], lake: list[StockEvent] | None = None, view: dict[str, Level] | None = None) -> Report:
    archived = None if lake is None else lake_of(lake)
    look_for = {item: found.last_sequence for item, found in (archived or {}).items()}
    return compare(fold(EVENTS) if view is None else view, added_up(log), added_up(log, look_for), archived)


def test_equal_sides_agree() -> None:
    report = check(EVENTS, EVENTS)
    assert (report.items, report.findings, report.behind, report.agrees) == (2, [], 0, True)
    assert check(EVENTS).behind is None


def test_a_compacted_log_agrees_with_the_whole_lake() -> None:
    compacted = [EVENTS[3], EVENTS[4]]
    assert check(compacted, EVENTS).agrees
    assert added_up(compacted).compacted == 3


def test_a_lake_that_is_behind_agrees_as_far_as_it_goes() -> None:
    report = check(EVENTS, EVENTS[:3])
    assert (report.findings, report.behind) == ([], 2)
    assert check(EVENTS, []).behind == 5


def test_surplus_events_of_one_item_do_not_offset_missing_ones_of_another() -> None:
    more = history(("pen", 5), ("pen", -3), ("pen", 1), ("pen", 1), ("pen", 1))
    report = check(EVENTS, more)
    assert (report.agrees, report.behind) == (False, 2)


@given(st.permutations(EVENTS))
def test_the_order_of_rows_in_the_lake_does_not_matter(rows: list[StockEvent]) -> None:
    assert check(EVENTS, rows).agrees


@pytest.mark.parametrize(
    ("log", "lake", "view", "said"),
    [
        (EVENTS, None, {"pen": Level(4, 3), "ink": Level(6, 2)}, "pen: the view says 4 after event 3; the history"),
        (EVENTS, None, {"pen": Level(3, 3)}, "ink: the view does not know it; elsewhere it is 6"),
        (EVENTS, None, fold(EVENTS) | {"nib": Level(1, 1)}, "nib: the history does not know it; elsewhere it is 1"),
        ([*EVENTS[:4], replace(EVENTS[4], change=2)], None, None, "pen: history: event 3 says 3; the changes"),
        ([*EVENTS, EVENTS[0]], None, None, "pen: history: event 1 comes after event 3"),
        (EVENTS, EVENTS[1:], None, "pen: lake: 1 of events 1 to 3 are missing, the first: 1"),
        (EVENTS, [*EVENTS, EVENTS[2]], None, "pen: lake: 1 events are there more than once"),
        (EVENTS, [*EVENTS[:4], replace(EVENTS[4], change=2)], None, "pen: lake: the changes add up to 4; its last"),
        (EVENTS, [*EVENTS[:4], replace(EVENTS[4], change=2, level=4)], None, "the history is at 3 after the same"),
        (EVENTS, [*EVENTS, replace(EVENTS[4], item="nib", sequence=1)], None, "nib: lake: the log has no event of it"),
        (EVENTS[:4], EVENTS, fold(EVENTS[:4]), "pen: lake: it has event 3; the log ends with event 2"),
    ],
)
def test_a_difference_is_found_and_named(
    log: list[StockEvent], lake: list[StockEvent] | None, view: dict[str, Level] | None, said: str
) -> None:
    report = check(log, lake, view)
    assert not report.agrees
    assert any(said in f"{finding.item}: {finding.what}" for finding in report.findings), report.findings


CHANGES = st.lists(st.tuples(st.sampled_from(["pen", "ink"]), st.integers(1, 9)), min_size=1, max_size=12)


@given(CHANGES, st.data())
def test_no_row_can_be_lost_doubled_or_changed_without_being_found(
    changes: list[tuple[str, int]], data: st.DataObject
) -> None:
    events = history(*changes)
    at = data.draw(st.integers(0, len(events) - 1))
    event = events[at]
    last_of_item = max(other.sequence for other in events if other.item == event.item) == event.sequence
    tampered = {
        "lost": [*events[:at], *events[at + 1 :]],
        "doubled": [*events, event],
        "changed": [*events[:at], replace(event, change=event.change + 1), *events[at + 1 :]],
        "invented": [*events, replace(event, sequence=event.sequence + 100)],
    }
    for rows in tampered.values():
        report = check(events, rows, fold(events))
        assert not report.agrees or (rows is tampered["lost"] and last_of_item and report.behind == 1)
