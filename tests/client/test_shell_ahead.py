"""Reading ahead: the same items, a limited number, the same failure, and an end when the caller stops reading."""

import threading
from collections.abc import Generator

import pytest

from quire.client.shell_ahead import ahead

WAIT_S = 30


def test_items_come_in_their_order() -> None:
    assert list(ahead((number for number in range(1000)), 3)) == list(range(1000))


def test_no_more_are_made_than_may_wait() -> None:
    made: list[int] = []
    first, fourth = threading.Event(), threading.Event()

    def items() -> Generator[int, None, None]:
        for number in range(10):
            made.append(number)
            if number == 3:
                fourth.set()
            yield number

    reader = ahead(items(), 2)
    assert next(reader) == 0
    assert fourth.wait(WAIT_S), "two wait on the shelf and one in hand"
    assert not first.wait(0.05)
    assert made == [0, 1, 2, 3]
    assert list(reader) == list(range(1, 10))


def test_a_failure_is_raised_after_the_items_before_it() -> None:
    def items() -> Generator[int, None, None]:
        yield 1
        raise ValueError("broken")

    reader = ahead(items(), 5)
    assert next(reader) == 1
    with pytest.raises(ValueError, match="broken"):
        next(reader)


def test_a_caller_that_stops_reading_ends_the_iterator() -> None:
    closed = threading.Event()

    def items() -> Generator[int, None, None]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    reader = ahead(items(), 2)
    next(reader)
    reader.close()  # type: ignore[attr-defined]
    assert closed.wait(WAIT_S)
