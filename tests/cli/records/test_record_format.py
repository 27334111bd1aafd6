import json

import pytest

from quire.cli.records.record_format import (
    hex_line,
    iso_time,
    json_line,
    json_line_with_json_value,
    text_formatter,
)
from quire.client.offsets import TopicPartition
from quire.protocol.records import Record

TOPIC_PARTITION = TopicPartition("t", 3)
RECORD = Record(7, 1_700_000_000_123, b"k", b"v", [("h", b"x"), ("n", None)])
BINARY = Record(8, 0, b"\xff", None, [("h", b"\xfe")])


def test_text_is_the_value_and_nothing_else() -> None:
    assert text_formatter(key_separator=None, verbose=False)(TOPIC_PARTITION, RECORD) == b"v\n"
    assert text_formatter(key_separator=None, verbose=False)(TOPIC_PARTITION, BINARY) == b"\n"


def test_text_with_a_separator_reads_back_as_it_was_produced() -> None:
    assert text_formatter(key_separator=":", verbose=False)(TOPIC_PARTITION, RECORD) == b"k:v\n"


def test_verbose_text_says_where_and_when() -> None:
    line = text_formatter(key_separator="=", verbose=True)(TOPIC_PARTITION, RECORD)
    assert line == b"3\t7\t2023-11-14T22:13:20.123Z\th=x,n=null\tk=v\n"


def test_hex_shows_bytes_and_null_apart() -> None:
    assert hex_line(TOPIC_PARTITION, BINARY) == b"3\t8\tff\t-\th=fe\n"


def test_json_is_one_line_with_everything() -> None:
    line = json_line(TOPIC_PARTITION, RECORD)
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp": 1_700_000_000_123,
        "key": "k",
        "value": "v",
        "headers": [{"name": "h", "value": "x"}, {"name": "n", "value": None}],
    }


def test_json_carries_bytes_that_are_not_text_as_base64() -> None:
    shown = json.loads(json_line(TOPIC_PARTITION, BINARY))
    assert shown["key_base64"] == "/w=="
    assert "key" not in shown and shown["value"] is None
    assert shown["headers"] == [{"name": "h", "value_base64": "/g=="}]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b'{"a": [1, null]}', '{"a": [1, null]}'),
        (b' {\n\t"a":\r\n1}\n', '{  "a":  1}'),
        (b"12345678901234567890.100", "12345678901234567890.100"),
        (b'{"a": 1e400, "a": 2}', '{"a": 1e400, "a": 2}'),
        (b'"text"', '"text"'),
        (b"true", "true"),
        (b"null", "null"),
        ('"\u009b\u202e\xe9"'.encode(), '"\\u009b\\u202e\xe9"'),
    ],
)
def test_a_value_that_is_json_is_shown_as_it_is_on_one_line(value: bytes, text: str) -> None:
    line = json_line_with_json_value(TOPIC_PARTITION, Record(7, 0, b"k", value, [])).decode()
    assert f'"key": "k", "value": {text}, "headers"' in line
    assert line.count("\n") == 1 and json.loads(line)["offset"] == 7


@pytest.mark.parametrize(
    "value", [b"", b"v", b"NaN", b"{", b"[" * 100_000, b"9" * 5000, None, b"\xff", b"\xef\xbb\xbf1"]
)
def test_a_value_that_is_not_json_is_shown_as_text(value: bytes | None) -> None:
    record = Record(7, 0, b"k", value, [])
    assert json_line_with_json_value(TOPIC_PARTITION, record) == json_line(TOPIC_PARTITION, record)


def test_times_that_no_calendar_has_are_shown_as_numbers() -> None:
    assert iso_time(-1) == "-"
    assert iso_time(0) == "1970-01-01T00:00:00.000Z"
    assert iso_time(10**18) == str(10**18)
