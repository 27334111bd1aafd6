"""A result that comes later, without an event loop.

A handler returns either a value, or a `Pending` that is completed when the event it waits for has happened: the high
watermark has moved, a metadata record is committed, a timer has fired. `Pending` is smaller than `asyncio.Future` on
purpose: it has one waiter, runs callbacks in place and needs no loop, so that the pure cores can use it.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Pending(Generic[T]):
    """Completed once and observed once; or abandoned by its waiter, after which completing it has no effect.

    It drops its references to both sides as soon as it is completed or abandoned. So the memory of a request that
    waited is freed when the request is answered, not when garbage is collected.
    """

    __slots__ = ("_abandoned", "_callback", "_change", "_value", "done", "on_abandoned")

    holds_up_next: ClassVar[bool] = True
    """As the answer to a request: whether the next request of the connection has to wait for it."""

    def __init__(self, on_abandoned: Callable[[], None] | None = None) -> None:
        self.on_abandoned = on_abandoned
        self.done = False
        """Whether the result is available; read-only for others. An attribute, because it is read very often."""
        self._abandoned = False
        self._value: T | None = None
        self._callback: Callable[[T], None] | None = None
        self._change: Callable[[Any], T] | None = None

    @property
    def value(self) -> T:
        """The result; only available when `done`."""
        assert self.done, "the value of a pending result was read before it was completed"
        return self._value  # type: ignore[return-value]

    def complete(self, value: T) -> None:
        assert not self.done, "a pending result was completed twice"
        self.complete_once(value)

    def complete_once(self, value: T) -> bool:
        """Completes it unless it is completed already: for the race between an event and its time-out."""
        if self.done or self._abandoned:
            return False
        self.done = True
        self.on_abandoned = None
        if self._change is not None:
            change, self._change = self._change, None
            value = change(value)
        self._value = value
        if self._callback is not None:
            callback, self._callback = self._callback, None
            callback(value)
        return True

    def when_done(self, callback: Callable[[T], None]) -> None:
        """Calls `callback` with the result, at once if it is available."""
        assert self._callback is None, "a pending result has one waiter"
        if self.done:
            callback(self._value)  # type: ignore[arg-type]
        else:
            self._callback = callback

    def abandon(self) -> None:
        """Ends the wait: `on_abandoned` cancels timers and leaves queues."""
        if self.done or self._abandoned:
            return
        self._abandoned = True
        self._callback = self._change = None
        on_abandoned, self.on_abandoned = self.on_abandoned, None
        if on_abandoned is not None:
            on_abandoned()

    def then(self, change: Callable[[T], U]) -> "Pending[U]":
        """Applies `change` to the result, and returns the same pending.

        The waiter calls this before, or instead of, `when_done`.
        """
        assert self._callback is None, "a pending result has one waiter"
        if self.done:
            self._value = change(self._value)  # type: ignore[arg-type, assignment]
        elif self._change is None:
            self._change = change  # type: ignore[assignment]
        else:
            first = self._change
            self._change = lambda value: change(first(value))  # type: ignore[assignment]
        return self  # type: ignore[return-value]


def gather(parts: Sequence[Pending[T]]) -> Pending[list[T]]:
    """All results, in the order of `parts`, when the last one is available."""
    missing = len([part for part in parts if not part.done])
    if not missing:
        return completed([part.value for part in parts])

    def abandon() -> None:
        for part in parts:
            part.abandon()

    gathered: Pending[list[T]] = Pending(on_abandoned=abandon)

    def one_more(_: T) -> None:
        nonlocal missing
        missing -= 1
        if missing == 0:
            gathered.complete([part.value for part in parts])

    for part in parts:
        if not part.done:
            part.when_done(one_more)
    return gathered


def completed(value: T) -> Pending[T]:
    """A result that is available already, for callers that expect a `Pending`."""
    pending: Pending[T] = Pending.__new__(Pending)
    # The other attributes are only read while a result is missing.
    pending.done = True
    pending._value = value
    pending._callback = None
    return pending
