"""Events and refusals on the wire."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire_samples.inventory.commands import Kind
from quire_samples.inventory.events import (
    Reason,
    Refusal,
    Source,
    StockEvent,
    UnreadableEventError,
    decode_event,
    decode_refusal_source,
    encode_event,
    encode_refusal,
    quote,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
NUMBERS = st.integers(0, 2**53)
EVENTS = st.builds(
    StockEvent,
    item=TEXTS,
    sequence=st.integers(1, 2**53),
    change=st.integers(-(10**9), 10**9),
    level=NUMBERS,
    kind=st.sampled_from(Kind),
    command=TEXTS,
    line=NUMBERS,
    lines=NUMBERS,
    source=st.builds(Source, st.integers(0, 9), NUMBERS),
    at_ms=NUMBERS,
)


@given(EVENTS)
def test_an_event_is_read_unchanged(event: StockEvent) -> None:
    assert decode_event(encode_event(event)) == event


@pytest.mark.parametrize("value", [None, b"", b"[]", b"{}", b"7", b'{"item": 1}', b"[" * 100_000])
def test_foreign_records_are_not_taken_for_events(value: bytes | None) -> None:
    with pytest.raises(UnreadableEventError):
        decode_event(value)


def test_an_event_with_impossible_numbers_or_names_is_not_taken_for_one() -> None:
    event = StockEvent("pen", 1, 3, 3, Kind.SHIPMENT, "s-1", 1, 1, Source(0, 7))
    content = json.loads(encode_event(event))
    impossible = {
        "level": -1,
        "sequence": 0,
        "change": "3",
        "lines": 1.0,
        "source_partition": "0",
        "source_offset": None,
    }
    for name, value in (impossible | {"item": ["pen"], "command": {}}).items():
        with pytest.raises(UnreadableEventError):
            decode_event(json.dumps(content | {name: value}).encode())
    for name in ("item", "command"):  # half of a surrogate pair, which nothing can store
        with pytest.raises(UnreadableEventError):
            decode_event(json.dumps(content | {name: "\ud800"}).encode())


def test_a_refusal_says_which_command_and_why() -> None:
    refusal = Refusal(Reason.INSUFFICIENT, "3 of pen were ordered, and 2 are there", Source(1, 7), "o-1", Kind.ORDER, 5)
    assert refusal.key == "o-1"
    assert json.loads(encode_refusal(refusal)) == {
        "reason": "insufficient",
        "detail": "3 of pen were ordered, and 2 are there",
        "command": "o-1",
        "kind": "order",
        "at_ms": 5,
        "source_partition": 1,
        "source_offset": 7,
        "quote": None,
    }


def test_a_refusal_of_a_command_without_an_id_is_identified_by_its_position() -> None:
    assert Refusal(Reason.MALFORMED, "it is not JSON", Source(1, 7)).key == "1@7"


def test_a_quote_of_any_bytes_is_text_and_bounded() -> None:
    assert quote(b"caf\xc3\xa9 \xff") == "café \\xff"
    assert len(quote(b"\xff" * 10_000_000) or "") == 4_000
    assert quote(None) is None


def test_the_source_of_a_refused_command_can_be_read_back() -> None:
    assert decode_refusal_source(encode_refusal(Refusal(Reason.MALFORMED, "it is not JSON", Source(1, 7)))) == (
        Source(1, 7)
    )
    for value in (None, b"", b"[]", b"{}", b'{"source_partition": "0", "source_offset": 1}'):
        with pytest.raises(UnreadableEventError):
            decode_refusal_source(value)
