import pytest

from quire.pending import Pending, gather
from quire.steps import Steps, perform, sleep, wait
from simulator.clock import SimClock


def done(value: object) -> Pending[object]:
    pending: Pending[object] = Pending()
    pending.complete(value)
    return pending


def test_an_operation_waits_for_what_it_yields_and_returns_its_result() -> None:
    first: Pending[int | Exception] = Pending()

    def operation() -> Steps[int]:
        value = yield from wait(first)
        return value + 1

    result = perform(operation())
    assert not result.done
    first.complete(41)
    assert result.value == 42


def test_an_exception_in_the_place_of_a_value_is_raised_where_the_operation_waits() -> None:
    def operation() -> Steps[str]:
        try:
            yield from wait(done(KeyError("gone")))
        except KeyError:
            return "caught"
        return "not raised"

    assert perform(operation()).value == "caught"


def test_an_exception_that_an_operation_does_not_catch_is_its_result() -> None:
    def operation() -> Steps[None]:
        yield from wait(done(ValueError("no")))

    outcome = perform(operation()).value
    assert isinstance(outcome, ValueError)


def test_any_number_of_ready_results_does_not_deepen_the_stack() -> None:
    def operation() -> Steps[int]:
        total = 0
        for _ in range(50_000):
            value = yield from wait(done(1))
            assert isinstance(value, int)
            total += value
        return total

    assert perform(operation()).value == 50_000


def test_sleeping_takes_time_on_the_clock() -> None:
    clock = SimClock()

    def operation() -> Steps[float]:
        yield from sleep(clock, 250)
        return clock.monotonic_ms()

    result = perform(operation())
    clock.run_until(lambda: result.done)
    assert result.value == 250


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_gathered_results_come_in_the_order_asked_for(order: list[int]) -> None:
    pendings: list[Pending[int]] = [Pending() for _ in range(3)]
    together = gather(pendings)
    for index in order:
        assert not together.done
        pendings[index].complete(index * 10)
    assert together.value == [0, 10, 20]


def test_gathering_nothing_is_done_at_once() -> None:
    assert gather([]).value == []
