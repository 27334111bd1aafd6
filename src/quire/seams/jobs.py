"""Blocking work that comes back as an event."""

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

        `work` touches only files and values handed to it, never the state the loop decides on. Work that only
        `computes`, without touching a file, may go on after a stop: it can take long, and nothing comes of it.
        """
        ...

    def stop(self) -> None:
        """Waits for what is running (but see `computes`), drops what has not begun, and calls nothing back any more."""
        ...
