"""The stock never goes below zero, counts without gaps, and is the sum of its events."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire_samples.inventory.commands import Command, Kind, Line, encode_command
from quire_samples.inventory.events import Reason, Refusal, Source, StockEvent
from quire_samples.inventory.seen import Seen
from quire_samples.inventory.stock import LEVEL_MAX, Level, OutOfOrderError, Stock, fold

ITEMS = st.sampled_from(["pen", "ink", "atlas"])
LINES = st.lists(st.builds(Line, ITEMS, st.integers(1, 9)), min_size=1, max_size=4).map(tuple)
COMMANDS = st.builds(Command, st.integers(0, 30).map(str), st.sampled_from(Kind), LINES)
RECORDS = st.lists(COMMANDS.map(encode_command) | st.sampled_from([b"{", b"[]", None]), max_size=40)


def shipment(command_id: str, *lines: tuple[str, int]) -> bytes:
    return encode_command(Command(command_id, Kind.SHIPMENT, tuple(Line(*line) for line in lines)))


def order(command_id: str, *lines: tuple[str, int]) -> bytes:
    return encode_command(Command(command_id, Kind.ORDER, tuple(Line(*line) for line in lines)))


def run(stock: Stock, *values: bytes | None, first_offset: int = 0) -> list[list[StockEvent] | Refusal]:
    return [stock.decide(value, Source(0, first_offset + index)) for index, value in enumerate(values)]


def events_of(outcomes: list[list[StockEvent] | Refusal]) -> list[StockEvent]:
    return [event for outcome in outcomes if isinstance(outcome, list) for event in outcome]


def test_a_shipment_adds_and_an_order_takes_out() -> None:
    stock = Stock()
    events = events_of(run(stock, shipment("s", ("pen", 5), ("ink", 2)), order("o", ("ink", 2), ("pen", 1))))
    told = [(event.item, event.sequence, event.change, event.level, event.line, event.lines) for event in events]
    assert told == [("pen", 1, 5, 5, 1, 2), ("ink", 1, 2, 2, 2, 2), ("ink", 2, -2, 0, 1, 2), ("pen", 2, -1, 4, 2, 2)]
    assert stock.levels == {"pen": Level(4, 2), "ink": Level(0, 2)}
    assert [(event.command, event.source) for event in events[::3]] == [("s", Source(0, 0)), ("o", Source(0, 1))]


def test_an_order_that_one_item_cannot_meet_is_refused_whole() -> None:
    stock = Stock()
    run(stock, shipment("s", ("pen", 5), ("ink", 2)))
    refusal = stock.decide(order("o", ("pen", 1), ("ink", 3)), Source(0, 1))
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.command, refusal.source) == (Reason.INSUFFICIENT, "o", Source(0, 1))
    assert refusal.detail == "3 of ink were ordered, but the stock is 2"
    assert stock.levels == {"pen": Level(5, 1), "ink": Level(2, 1)}


def test_two_lines_of_an_order_that_together_take_too_much_are_refused() -> None:
    stock = Stock()
    run(stock, shipment("s", ("pen", 5)))
    assert isinstance(stock.decide(order("o", ("pen", 3), ("pen", 3)), Source(0, 1)), Refusal)
    assert stock.levels == {"pen": Level(5, 1)}


def test_two_lines_of_the_same_item_are_two_events() -> None:
    events = events_of(run(Stock(), shipment("s", ("pen", 3), ("pen", 4))))
    assert [(event.sequence, event.level) for event in events] == [(1, 3), (2, 7)]


def test_an_order_of_an_unknown_item_is_refused() -> None:
    assert isinstance(Stock().decide(order("o", ("pen", 1)), Source(0, 0)), Refusal)


def test_a_shipment_beyond_what_numbers_hold_is_refused() -> None:
    stock = Stock()
    stock.levels["pen"] = Level(LEVEL_MAX - 1, 1)
    assert isinstance(stock.decide(shipment("s", ("pen", 1)), Source(0, 0)), list)
    refusal = stock.decide(shipment("t", ("pen", 1)), Source(0, 1))
    assert isinstance(refusal, Refusal) and refusal.reason is Reason.EXCESSIVE


def test_the_same_command_again_is_refused_as_a_duplicate_and_changes_nothing() -> None:
    stock = Stock()
    run(stock, shipment("s", ("pen", 5)))
    refusal = stock.decide(shipment("s", ("pen", 5)), Source(0, 1))
    assert isinstance(refusal, Refusal) and refusal.reason is Reason.DUPLICATE
    assert "at offset 0" in refusal.detail
    assert stock.levels == {"pen": Level(5, 1)}


def test_another_command_under_a_used_id_is_refused_as_that() -> None:
    stock = Stock()
    run(stock, shipment("s", ("pen", 5)))
    refusal = stock.decide(shipment("s", ("pen", 6)), Source(0, 1))
    assert isinstance(refusal, Refusal) and refusal.reason is Reason.ID_REUSED


def test_a_refused_order_sent_again_stays_refused_although_there_is_enough_by_now() -> None:
    outcomes = run(Stock(), order("o", ("pen", 1)), shipment("s", ("pen", 5)), order("o", ("pen", 1)))
    assert isinstance(outcomes[2], Refusal) and outcomes[2].reason is Reason.DUPLICATE


def test_a_malformed_command_does_not_use_its_id_up() -> None:
    outcomes = run(Stock(), b'{"id": "s", "kind": "shipment"}', shipment("s", ("pen", 5)))
    assert isinstance(outcomes[0], Refusal) and outcomes[0].reason is Reason.MALFORMED
    assert outcomes[0].quote == '{"id": "s", "kind": "shipment"}'
    assert isinstance(outcomes[1], list)


@given(RECORDS)
def test_no_level_goes_below_zero_and_no_sequence_has_a_gap(values: list[bytes | None]) -> None:
    sequences: dict[str, int] = {}
    for event in events_of(run(Stock(), *values)):
        assert event.level >= 0
        assert event.sequence == sequences.get(event.item, 0) + 1
        sequences[event.item] = event.sequence


@given(RECORDS)
def test_the_fold_of_the_events_is_the_stock(values: list[bytes | None]) -> None:
    stock = Stock()
    assert fold(events_of(run(stock, *values))) == stock.levels


@given(RECORDS)
def test_every_command_leads_to_all_its_events_or_to_one_refusal(values: list[bytes | None]) -> None:
    for offset, outcome in enumerate(run(Stock(), *values)):
        if isinstance(outcome, Refusal):
            assert outcome.source == Source(0, offset)
        else:
            assert [(event.line, event.source) for event in outcome] == [
                (number, Source(0, offset)) for number in range(1, outcome[0].lines + 1)
            ]


@given(RECORDS, st.data())
def test_a_stock_restored_from_the_last_event_of_each_item_decides_as_the_one_before(
    values: list[bytes | None], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(values)))
    before, restored = Stock(Seen(window=8)), Stock(Seen(window=8))
    compacted = {event.item: event for event in events_of(run(before, *values[:cut]))}
    for event in compacted.values():
        restored.restore(event)
    for offset in range(restored.seen.begin(cut, 0), cut):
        restored.see(values[offset], Source(0, offset))
    rest = values[cut:]
    assert run(restored, *rest, first_offset=cut) == run(before, *rest, first_offset=cut)
    assert restored.levels == before.levels


def test_a_gap_in_the_events_is_detected() -> None:
    first, second = events_of(run(Stock(), shipment("s", ("pen", 3), ("pen", 4))))
    assert fold([first, second]) == {"pen": Level(7, 2)}
    for history in (
        [second],
        [first, first],
        [first, replace(second, sequence=3)],
        [first, replace(second, level=8)],
        [first, replace(second, level=-1, change=-4)],
    ):
        with pytest.raises(OutOfOrderError):
            fold(history)


def test_an_event_older_than_one_already_restored_is_noticed() -> None:
    first, second = events_of(run(Stock(), shipment("s", ("pen", 3), ("pen", 4))))
    stock = Stock()
    stock.restore(second)
    with pytest.raises(OutOfOrderError):
        stock.restore(first)
