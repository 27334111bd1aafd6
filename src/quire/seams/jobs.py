"""Blocking work whose result returns to the event loop as an event."""

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Jobs(Protocol):
    def submit(
        self,
        work: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None],
        *,
        computes: bool = False,
    ) -> None:
        """Runs `work` off the event loop; then, on the loop, `done` with its result or `failed` with its exception.

        `work` uses only files and the values passed to it, never the state that the event loop changes. Work that only
        `computes`, without using a file, may continue after `stop`: it can take long, and has no effect.
        """
        ...

    def stop(self) -> None:
        """Waits for running work (but see `computes`), drops work that has not begun, and makes no more callbacks."""
        ...
