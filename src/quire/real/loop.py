"""The event loop of a node: uvloop if it is installed, asyncio's own otherwise."""

import asyncio
import signal
from collections.abc import Callable

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def on_stop_signal(loop: asyncio.AbstractEventLoop, stop: Callable[[int], None]) -> None:
    """Calls `stop` on the loop, with the number of the signal, for SIGTERM and Ctrl-C, as soon as the loop runs.

    Not earlier, because uvloop loses a signal that comes before it runs; until then a signal ends the process.
    """

    def install() -> None:
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, stop, number)

    loop.call_soon(install)


def close_for_good(loop: asyncio.AbstractEventLoop) -> None:
    """Closes the loop of a process that has only to exit. Stop signals are ignored from then on.

    Otherwise a second SIGTERM would kill a process that has just stopped cleanly: asyncio's loop restores the default
    action of its signals when it is closed, and Python restores it for all handlers while it exits. The signals are
    blocked meanwhile, so that none finds the default action.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        loop.close()
        for number in _STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
