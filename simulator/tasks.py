"""Coroutines on virtual time, so that a simulated client reads like the program it stands for.

A client is an `async def` that awaits promises: an answer, a delay, a gate. The simulated clock is the only event loop;
it resumes tasks in the order in which their promises were fulfilled, so a run repeats exactly. `SimClock.step` raises
what a task raises.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from simulator.clock import SimClock

T = TypeVar("T")


class Promise(Generic[T]):
    """A value or an error that comes later. One task waits for it; only the first value or error counts."""

    __slots__ = ("_error", "_settled", "_value", "_waiter")

    def __init__(self) -> None:
        self._settled = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._waiter: Callable[[], None] | None = None

    @property
    def settled(self) -> bool:
        return self._settled

    def keep(self, value: T) -> None:
        if not self._settled:
            self._value = value
            self._settle()

    def fail(self, error: Exception) -> None:
        if not self._settled:
            self._error = error
            self._settle()

    def __await__(self) -> Generator["Promise[Any]", None, T]:
        if not self._settled:
            yield self
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def when_settled(self, waiter: Callable[[], None]) -> None:
        assert self._waiter is None, "a promise has one waiter"
        if self._settled:
            waiter()
        else:
            self._waiter = waiter

    def _settle(self) -> None:
        self._settled = True
        if self._waiter is not None:
            self._waiter()


class Task:
    __slots__ = ("_clock", "_coroutine", "ended", "name")

    def __init__(self, clock: SimClock, name: str, coroutine: Coroutine[Promise[Any], None, None]) -> None:
        self.name = name
        self.ended = False
        self._clock = clock
        self._coroutine = coroutine
        clock.call_soon(self._go_on)

    def __repr__(self) -> str:
        return f"Task({self.name}, {'ended' if self.ended else 'at line ' + str(self._line())})"

    def end(self) -> None:
        """Cancels the task at whichever promise it waits for."""
        self.ended = True
        self._coroutine.close()

    def _go_on(self) -> None:
        if self.ended:
            return
        try:
            awaited = self._coroutine.send(None)
        except StopIteration:
            self.ended = True
        else:
            awaited.when_settled(lambda: self._clock.call_soon(self._go_on))

    def _line(self) -> int | None:
        frame = getattr(self._coroutine, "cr_frame", None)
        return frame.f_lineno if frame is not None else None


class Gate:
    """Open or closed; tasks wait until it is open."""

    __slots__ = ("_open", "_waiting")

    def __init__(self, *, is_open: bool) -> None:
        self._open = is_open
        self._waiting: list[Promise[None]] = []

    @property
    def is_open(self) -> bool:
        return self._open

    def open(self) -> None:
        self._open = True
        waiting, self._waiting = self._waiting, []
        for promise in waiting:
            promise.keep(None)

    def close(self) -> None:
        self._open = False

    async def passed(self) -> None:
        while not self._open:
            promise: Promise[None] = Promise()
            self._waiting.append(promise)
            await promise


def sleep(clock: SimClock, duration_ms: float) -> Promise[None]:
    promise: Promise[None] = Promise()
    clock.call_later(duration_ms, lambda: promise.keep(None))
    return promise
