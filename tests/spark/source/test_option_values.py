"""How the values of options are parsed, and the errors for invalid ones."""

from collections.abc import Callable
from typing import Any

import pytest

from pyspark_quire import option_values as values
from quire.client.offsets import EARLIEST, LATEST, TopicPartition


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (values.boolean, " True ", True),
        (values.whole, "0", 0),
        (values.positive, "12", 12),
        (values.names, "b, a,b", ["a", "b"]),
        (values.duration_ms, "15m", 900_000),
        (values.duration_ms, "500 ms", 500),
        (values.duration_ms, "7", 7),
        (values.assignment, '{"t": [1, 0, 1]}', [TopicPartition("t", 0), TopicPartition("t", 1)]),
        (values.offsets, "Earliest", EARLIEST),
        (values.offsets, "latest", LATEST),
        (values.offsets, '{"t": {"1": -2, "0": 5}}', {TopicPartition("t", 0): 5, TopicPartition("t", 1): -2}),
        (values.timestamps, '{"t": {"0": 17}}', {TopicPartition("t", 0): 17}),
        (values.one_of("error", "latest"), "LATEST", "latest"),
    ],
)
def test_a_text_is_read(parse: Callable[[str], Any], text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (values.text, "  "),
        (values.boolean, "yes"),
        (values.whole, "-1"),
        (values.whole, "1.5"),
        (values.whole, "1٣"),
        (values.positive, "0"),
        (values.names, " , "),
        (values.pattern, "("),
        (values.duration_ms, "soon"),
        (values.assignment, '{"t": 1}'),
        (values.assignment, '{"t": [-1]}'),
        (values.assignment, '{"t": [true]}'),
        (values.assignment, "{}"),
        (values.offsets, "oldest"),
        (values.offsets, '{"t": {"0": -3}}'),
        (values.offsets, '{"t": {"0": "5"}}'),
        (values.offsets, '{"t": {"zero": 5}}'),
        (values.offsets, "[]"),
        (values.offsets, "{}"),
        (values.timestamps, '{"t": {"0": -1}}'),
        (values.timestamps, "17"),
        (values.one_of("error", "latest"), "none"),
    ],
)
def test_a_text_that_is_not_understood_says_what_would_be(parse: Callable[[str], Any], text: str) -> None:
    with pytest.raises(ValueError, match=r"^must "):
        parse(text)
