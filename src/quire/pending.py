"""A result that comes later, without an event loop.

Handlers answer either at once, with a value, or with a `Pending` that somebody completes when the thing waited for has
happened: a high watermark passed, a metadata record committed, a timer fired. It is deliberately smaller than
`asyncio.Future`: one waiter, callbacks run in place, no loop, so that the pure cores may use it.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Pending(Generic[T]):
    """Completed once, observed once; or abandoned by whoever waited, after which completing it does nothing."""

    __slots__ = ("_abandoned", "_callback", "_done", "_value", "on_abandoned")

    def __init__(self, on_abandoned: Callable[[], None] | None = None) -> None:
        self.on_abandoned = on_abandoned
        self._done = False
        self._abandoned = False
        self._value: T | None = None
        self._callback: Callable[[T], None] | None = None

    @property
    def done(self) -> bool:
        return self._done

    @property
    def value(self) -> T:
        """The result; only to be asked for when `done`."""
        assert self._done, "asked a pending result for its value before it was there"
        return self._value  # type: ignore[return-value]

    def complete(self, value: T) -> None:
        assert not self._done, "a pending result was completed twice"
        if self._abandoned:
            return
        self._done = True
        self._value = value
        if self._callback is not None:
            self._callback(value)

    def complete_once(self, value: T) -> bool:
        """Completes unless somebody was faster: for the race between an event and its timeout."""
        if self._done or self._abandoned:
            return False
        self.complete(value)
        return True

    def when_done(self, callback: Callable[[T], None]) -> None:
        """Calls `callback` with the result, now if it is there already."""
        assert self._callback is None, "a pending result has one waiter"
        if self._done:
            callback(self._value)  # type: ignore[arg-type]
        else:
            self._callback = callback

    def abandon(self) -> None:
        """Whoever waited is gone: timers and places in queues that stood for it can be given back."""
        if self._done or self._abandoned:
            return
        self._abandoned = True
        self._callback = None
        if self.on_abandoned is not None:
            self.on_abandoned()

    def then(self, change: Callable[[T], U]) -> "Pending[U]":
        """The same result after `change`; abandoning what comes out abandons this one."""
        changed: Pending[U] = Pending(on_abandoned=self.abandon)
        self.when_done(lambda value: changed.complete(change(value)))
        return changed
