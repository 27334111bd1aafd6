"""Ctrl-C and SIGTERM ask for an orderly end; a second one does not wait for it."""

import signal
from collections.abc import Callable
from types import FrameType


class Stop:
    """Listens from when it is made; `then` is called when it is asked."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.asked = False
        self._then = then
        self.listen()

    def listen(self) -> None:
        """Also again, after a library has taken Ctrl-C for itself."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._then()
