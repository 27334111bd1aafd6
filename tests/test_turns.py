"""Work in turns: in order, a few at a time, and a failing one blocks no other."""

import pytest

from quire.turns import Turns
from simulator.clock import SimClock


def test_pieces_run_in_order_and_others_come_in_between() -> None:
    clock = SimClock()
    turns = Turns(clock, per_turn=2)
    done: list[int | str] = []
    for number in range(5):
        turns.add(lambda number=number: done.append(number))  # type: ignore[misc]
    clock.call_soon(lambda: done.append("a request"))
    assert done == []
    clock.run_until(lambda: len(turns) == 0)
    assert done == [0, 1, "a request", 2, 3, 4]


def test_a_piece_may_add_another() -> None:
    clock = SimClock()
    turns = Turns(clock, per_turn=2)
    done: list[int] = []
    turns.add(lambda: turns.add(lambda: done.append(1)))
    clock.run_until(lambda: bool(done))
    assert (done, len(turns)) == ([1], 0)


def test_a_piece_that_fails_does_not_take_the_others_along() -> None:
    clock = SimClock()
    turns = Turns(clock, per_turn=2)
    done: list[int] = []

    def fail() -> None:
        raise ValueError("a bug")

    turns.add(fail)
    turns.add(lambda: done.append(1))
    with pytest.raises(ValueError, match="a bug"):
        clock.run_until(lambda: bool(done))
    clock.run_until(lambda: bool(done))
    assert done == [1]


class BusyClock(SimClock):
    """Its time passes while something runs."""

    spent_ms = 0.0

    def monotonic_ms(self) -> float:
        return super().monotonic_ms() + self.spent_ms


def test_a_turn_ends_early_when_its_pieces_take_long() -> None:
    clock = BusyClock()
    turns = Turns(clock, per_turn=3, longest_ms=5)
    done: list[int | str] = []

    def take(duration_ms: int) -> None:
        done.append(duration_ms)
        clock.spent_ms += duration_ms

    for duration_ms in (1, 2, 1, 6, 1):
        turns.add(lambda duration_ms=duration_ms: take(duration_ms))  # type: ignore[misc]
    for name in ("first", "second"):
        clock.call_soon(lambda name=name: clock.call_soon(lambda: done.append(name)))  # type: ignore[misc]
    clock.run_until(lambda: len(turns) == 0)
    assert done[:4] == [1, 2, 1, 6]
    assert done[-1] == 1 and len(done) > 5, "others were served before the last one"
