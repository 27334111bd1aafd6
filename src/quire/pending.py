"""A result that comes later, without an event loop.

Handlers answer either at once, with a value, or with a `Pending` that somebody completes when the thing waited for has
happened: a high watermark passed, a metadata record committed, a timer fired. It is deliberately smaller than
`asyncio.Future`: one waiter, callbacks run in place, no loop, so that the pure cores may use it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Pending(Generic[T]):
    """Completed once, observed once; or abandoned by whoever waited, after which completing it does nothing.

    Those who wait and those who give up know each other through this. It lets go of both as soon as it is over, so that
    a request that waited is gone when it is answered, not when garbage is collected.
    """

    __slots__ = ("_abandoned", "_callback", "_change", "_value", "done", "on_abandoned")

    def __init__(self, on_abandoned: Callable[[], None] | None = None) -> None:
        self.on_abandoned = on_abandoned
        self.done = False
        """Whether the result is there; for others to read. An attribute, because it is asked for all the time."""
        self._abandoned = False
        self._value: T | None = None
        self._callback: Callable[[T], None] | None = None
        self._change: Callable[[Any], T] | None = None

    @property
    def value(self) -> T:
        """The result; only to be asked for when `done`."""
        assert self.done, "asked a pending result for its value before it was there"
        return self._value  # type: ignore[return-value]

    def complete(self, value: T) -> None:
        assert not self.done, "a pending result was completed twice"
        self.complete_once(value)

    def complete_once(self, value: T) -> bool:
        """Completes unless somebody was faster: for the race between an event and its timeout."""
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
        """Calls `callback` with the result, now if it is there already."""
        assert self._callback is None, "a pending result has one waiter"
        if self.done:
            callback(self._value)  # type: ignore[arg-type]
        else:
            self._callback = callback

    def abandon(self) -> None:
        """Whoever waited is gone: timers and places in queues that stood for it can be given back."""
        if self.done or self._abandoned:
            return
        self._abandoned = True
        self._callback = self._change = None
        on_abandoned, self.on_abandoned = self.on_abandoned, None
        if on_abandoned is not None:
            on_abandoned()

    def then(self, change: Callable[[T], U]) -> "Pending[U]":
        """From now on its result is what `change` makes of the one it is completed with; the same pending, otherwise.

        To be called by whoever would wait for it, instead of `when_done`.
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
    """All results, in the order of `parts`, when the last of them is there."""
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
    """A result that is there already, for whoever expects one that comes later."""
    pending: Pending[T] = Pending.__new__(Pending)
    # The rest is for those whose result is not there yet, and not looked at here.
    pending.done = True
    pending._value = value
    pending._callback = None
    return pending
