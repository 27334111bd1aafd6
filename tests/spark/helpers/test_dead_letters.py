"""The headers of dead letters, without Spark."""

import pytest

from quire.spark.dead_letters import (
    DeadLetter,
    NotADeadLetterError,
    attempt,
    dead_letter_topic,
    headers_to_send_back,
    read_headers,
)

HEADERS: list[tuple[str, bytes | None]] = [
    ("trace", b"17"),
    ("dlq.error", "rule größer does not hold".encode()),
    ("dlq.topic", b"orders"),
    ("dlq.partition", b"2"),
    ("dlq.offset", b"1234567890123"),
    ("dlq.attempt", b"3"),
]


def test_the_headers_say_why_and_where_from() -> None:
    assert read_headers(HEADERS) == DeadLetter("rule größer does not hold", "orders", 2, 1234567890123, 3)
    assert dead_letter_topic("orders") == "orders.dlq"


def test_a_record_without_the_header_is_at_its_first_attempt() -> None:
    assert attempt([]) == 1
    assert attempt([("trace", None)]) == 1


def test_a_replayed_letter_has_its_original_headers_and_the_next_attempt() -> None:
    back = headers_to_send_back(HEADERS)
    assert back == [("trace", b"17"), ("dlq.attempt", b"4")]
    assert headers_to_send_back(back) == [("trace", b"17"), ("dlq.attempt", b"5")]


@pytest.mark.parametrize("missing", ["dlq.error", "dlq.topic", "dlq.partition", "dlq.offset"])
def test_a_record_without_the_headers_is_not_a_dead_letter(missing: str) -> None:
    with pytest.raises(NotADeadLetterError, match=f"no header {missing}"):
        read_headers([header for header in HEADERS if header[0] != missing])


@pytest.mark.parametrize("text", [b"", b"-1", b"two", "²".encode()])
def test_numbers_that_are_none_are_named(text: bytes) -> None:
    with pytest.raises(NotADeadLetterError, match="offset is not a number"):
        read_headers([*HEADERS, ("dlq.offset", text)])
