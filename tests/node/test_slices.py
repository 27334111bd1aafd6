"""Long requests take turns with each other and with other work."""

from types import GeneratorType

import pytest

from quire.node.slices import SLICE_MS, UNDER_WAY_MAX, Slices, Work, begin, outcome
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from simulator.clock import SimClock


@pytest.fixture
def clock() -> SimClock:
    return SimClock()


@pytest.fixture
def slices(clock: SimClock, monkeypatch: pytest.MonkeyPatch) -> Slices:
    monkeypatch.setattr("quire.node.slices.STEPS_PER_SLICE", 10)
    return Slices(clock)


def counting(steps: int, seen: list[str], name: str = "") -> Work[int]:
    for step in range(steps):
        seen.append(f"{name}{step}")
        yield None
    return steps


def waiting(for_this: Pending[str]) -> Work[str]:
    value: str = yield for_this
    return value


def test_short_work_is_done_at_once(slices: Slices) -> None:
    assert slices.run(counting(9, [])) == 9


def test_work_without_a_step_is_done_at_once(slices: Slices) -> None:
    assert slices.run(counting(0, [])) == 0


def test_others_are_served_between_two_slices(slices: Slices, clock: SimClock) -> None:
    seen: list[str] = []
    running = slices.run(counting(25, seen))
    assert isinstance(running, Pending)
    clock.call_soon(lambda: seen.append("another request"))
    clock.run_until(lambda: running.done)
    assert running.value == 25
    assert seen.index("another request") <= 21, "after the first two slices at the latest"


def test_time_ends_a_slice_too(slices: Slices, clock: SimClock) -> None:
    times: list[float] = []

    def slow() -> Work[None]:
        for _ in range(3):
            times.append(clock.monotonic_ms())
            clock.run_for(SLICE_MS)
            yield None

    assert isinstance(slices.run(slow()), Pending)
    assert len(times) <= 2


def test_long_requests_take_turns(slices: Slices, clock: SimClock) -> None:
    seen: list[str] = []
    first = slices.run(counting(40, seen, "a"))
    second = slices.run(counting(40, seen, "b"))
    assert isinstance(first, Pending)
    assert isinstance(second, Pending)
    clock.run_until(lambda: first.done and second.done)
    assert seen.index("b20") < seen.index("a39"), "the second did not have to wait for the end of the first"


def test_only_a_few_are_under_way(slices: Slices, clock: SimClock) -> None:
    seen: list[str] = []
    running = [slices.run(counting(40, seen, f"{number}:")) for number in range(UNDER_WAY_MAX + 1)]
    last = running[-1]
    assert isinstance(last, Pending)
    clock.run_until(lambda: last.done)
    assert seen.index(f"{UNDER_WAY_MAX}:20") > seen.index("0:39"), "the last waited until another had finished"


def test_waiting_work_does_not_delay_other_work(slices: Slices, clock: SimClock) -> None:
    never = [slices.run(waiting(Pending())) for _ in range(UNDER_WAY_MAX + 1)]
    assert all(isinstance(each, Pending) for each in never)
    running = slices.run(counting(40, []))
    assert isinstance(running, Pending)
    clock.run_until(lambda: running.done)


def test_work_continues_at_once_when_its_result_is_ready(slices: Slices) -> None:
    there: Pending[str] = Pending()
    running = slices.run(waiting(there))
    assert isinstance(running, Pending)
    there.complete("it")
    assert running.value == "it"


def test_a_refusal_is_raised_at_once_or_becomes_the_result(slices: Slices) -> None:
    refusal = ApiError(ErrorCode.INVALID_REQUEST, "no")

    def refused(first: Pending[ApiError | None]) -> Work[None]:
        yield from outcome(first)

    there: Pending[ApiError | None] = Pending()
    there.complete(refusal)
    with pytest.raises(ApiError) as raised:
        slices.run(refused(there))
    assert raised.value is refusal
    later: Pending[ApiError | None] = Pending()
    running = slices.run(refused(later))
    assert isinstance(running, Pending)
    later.complete(refusal)
    assert running.value is refusal


def test_a_mistake_of_ours_is_the_clients_unknown_server_error(slices: Slices) -> None:
    def broken(first: Pending[None]) -> Work[None]:
        yield first
        raise KeyError("a bug")

    there: Pending[None] = Pending()
    running = slices.run(broken(there))
    assert isinstance(running, Pending)
    there.complete(None)
    assert isinstance(running.value, ApiError)
    assert running.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_work_for_a_disconnected_client_is_dropped(slices: Slices, clock: SimClock) -> None:
    seen: list[str] = []
    running = slices.run(counting(100, seen))
    assert isinstance(running, Pending)
    running.abandon()
    clock.run_until_idle()
    assert len(seen) <= 11
    given_back: list[str] = []
    wait: Pending[str] = Pending(on_abandoned=lambda: given_back.append("place in a queue"))
    running_too = slices.run(waiting(wait))
    assert isinstance(running_too, Pending)
    running_too.abandon()
    assert given_back == ["place in a queue"]


def test_started_work_continues_where_it_was(slices: Slices, clock: SimClock) -> None:
    seen: list[str] = []
    assert begin(counting(3, seen)) == 3
    seen.clear()
    rest = begin(counting(40, seen))
    assert isinstance(rest, GeneratorType)
    running = slices.run(rest)
    assert isinstance(running, Pending)
    clock.run_until(lambda: running.done)
    assert (running.value, seen) == (40, [str(step) for step in range(40)])


def test_work_that_has_begun_gets_what_it_waits_for(slices: Slices) -> None:
    there: Pending[str] = Pending()
    rest = begin(waiting(there))
    assert isinstance(rest, GeneratorType)
    running = slices.run(rest)
    assert isinstance(running, Pending)
    there.complete("it")
    assert running.value == "it"
