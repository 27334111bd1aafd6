"""The end of a command on Ctrl-C and on SIGTERM, which `timeout`, systemd and containers send.

Both signals end every command in the same way. `term_ends_like_ctrl_c` makes SIGTERM raise an exception wherever the
command is, as Python does for Ctrl-C; `RootGroup` runs every command in it. A command that has work to finish creates a
`Stop` instead, and looks at it between two steps.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from types import FrameType
from typing import TYPE_CHECKING

from quire.console.failure import EXIT_INTERRUPTED, EXIT_TERMINATED

if TYPE_CHECKING:
    import socket

SAME_REQUEST_S = 1.0


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived. It is a KeyboardInterrupt, so code that cleans up after Ctrl-C cleans up after this too."""


class Request(Enum):
    FIRST = auto()
    SAME = auto()  # the first one, delivered once more
    SECOND = auto()


class StopRequests:
    """Tells the first request to stop from a second one.

    `timeout` signals its child, and then the process group that the child is in: one request arrives as two SIGTERMs.
    The second must not cut short the clean-up that the first has started.
    """

    def __init__(self) -> None:
        self._first_at_s: float | None = None

    def arrived(self, number: int) -> Request:
        """Takes the number of a signal that arrived now."""
        now_s = time.monotonic()
        if self._first_at_s is None:
            self._first_at_s = now_s
            return Request.FIRST
        return (
            Request.SAME if number == signal.SIGTERM and now_s - self._first_at_s < SAME_REQUEST_S else Request.SECOND
        )


@contextmanager
def term_ends_like_ctrl_c() -> Iterator[None]:
    """Makes SIGTERM raise `Terminated` in the main thread, and Ctrl-C a KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # see `program`
        signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.getsignal(signal.SIGTERM)
    if before != signal.SIG_DFL:
        yield  # in a test or a program that has its own handler, or ignored on purpose
        return
    requests = StopRequests()

    def end(number: int, frame: FrameType | None) -> None:
        if requests.arrived(number) is not Request.SAME:
            raise Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Stop:
    """Handles the signals from its creation on; `then` is called at the first one. A second one stops at once."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.asked = False
        self._number = 0
        self._then = then
        self._requests = StopRequests()
        self.listen()

    def listen(self) -> None:
        """Called again after a library has replaced the handlers."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    @property
    def exit_code(self) -> int:
        """For a command that prints a message when it ends after a signal."""
        return EXIT_TERMINATED if self._number == signal.SIGTERM else EXIT_INTERRUPTED

    def end_if_asked(self) -> None:
        """Ends the command as the signal would have, now that its work is finished."""
        if self.asked:
            raise _exception(self._number)

    @contextmanager
    def wakes(self) -> "Iterator[socket.socket]":
        """A socket that is readable after a signal: waiting for events continues after a handler that returns."""
        import socket

        readable, written = socket.socketpair()
        with readable, written:
            readable.setblocking(False)
            written.setblocking(False)
            before = signal.set_wakeup_fd(written.fileno())
            try:
                yield readable
            finally:
                signal.set_wakeup_fd(before)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        request = self._requests.arrived(number)
        if request is Request.SECOND:
            raise _exception(number)
        if request is Request.FIRST:
            self.asked, self._number = True, number
            self._then()


def _exception(number: int) -> KeyboardInterrupt:
    return Terminated() if number == signal.SIGTERM else KeyboardInterrupt()
