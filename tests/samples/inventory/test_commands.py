"""Which messages are commands, and how others are refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire_samples.inventory.commands import Command, Kind, Line, MalformedError, decode_command, encode_command

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
LINES = st.lists(st.builds(Line, TEXTS, st.integers(1, 10**9)), min_size=1, max_size=20).map(tuple)
COMMANDS = st.builds(Command, TEXTS, st.sampled_from(Kind), LINES, st.integers(0, 2**40))

GOOD = {"id": "o-1", "kind": "order", "at_ms": 5, "lines": [{"item": "pen", "quantity": 2}]}


@given(COMMANDS)
def test_a_command_is_read_unchanged(command: Command) -> None:
    assert decode_command(encode_command(command)) == command


@given(st.binary(max_size=200))
def test_any_bytes_are_a_command_or_malformed(value: bytes) -> None:
    try:
        decode_command(value)
    except MalformedError as error:
        assert str(error)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*GOOD, "item", "quantity"]), inner),
    )
)
def test_any_json_is_a_command_or_malformed(content: object) -> None:
    try:
        decode_command(json.dumps(content).encode())
    except MalformedError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": None}, '"id" of the command is missing'),
        ({"id": ""}, '"id" of the command'),
        ({"id": "x" * 201}, "1 to 200 characters"),
        ({"id": "\ud800"}, '"id" of the command'),
        ({"kind": "gift"}, 'it must be "shipment" or "order"'),
        ({"kind": ["order"]}, '"kind" is'),
        ({"at_ms": -1}, '"at_ms" is -1'),
        ({"at_ms": 1.5}, '"at_ms" is 1.5'),
        ({"lines": []}, "1 to 1000 lines"),
        ({"lines": "pen"}, "1 to 1000 lines"),
        ({"lines": [{"item": "pen", "quantity": 1}] * 1001}, "1 to 1000 lines"),
        ({"lines": [{"item": "pen", "quantity": 1}, 7]}, "line 2 is 7"),
        ({"lines": [{"item": "pen", "quantity": 0}]}, '"quantity" of line 1 is 0'),
        ({"lines": [{"item": "pen", "quantity": -3}]}, '"quantity" of line 1 is -3'),
        ({"lines": [{"item": "pen", "quantity": True}]}, '"quantity" of line 1 is True'),
        ({"lines": [{"item": "pen", "quantity": 1.0}]}, '"quantity" of line 1 is 1.0'),
        ({"lines": [{"item": "pen"}]}, '"quantity" of line 1 is missing'),
        ({"lines": [{"quantity": 1}]}, '"item" of line 1 is missing'),
    ],
)
def test_errors_name_the_wrong_field(change: dict[str, object], said: str) -> None:
    with pytest.raises(MalformedError) as raised:
        decode_command(json.dumps(GOOD | change).encode())
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "no value"),
        (b"", "not JSON"),
        (b"\xff\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"at_ms": ' + b"9" * 5_000 + b"}", "not JSON"),
        (b"[]", "not an object"),
        (b" " * 1_000_001, "1000001 bytes"),
    ],
)
def test_a_command_that_is_not_an_object_is_malformed(value: bytes | None, said: str) -> None:
    with pytest.raises(MalformedError) as raised:
        decode_command(value)
    assert said in str(raised.value)


def test_a_digest_is_that_of_the_content_and_not_of_its_spelling() -> None:
    spelled_otherwise = json.dumps({"other": 1, **dict(reversed(GOOD.items()))}, indent=2).encode()
    command = decode_command(json.dumps(GOOD).encode())
    assert decode_command(spelled_otherwise).digest == command.digest
    assert Command("o-1", Kind.ORDER, (Line("pen", 3),), 5).digest != command.digest
