"""The event loop of a node: uvloop where it is installed, asyncio's own otherwise."""

import asyncio
import signal
from collections.abc import Callable


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def on_stop_signal(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """Calls `stop`, on the loop, for SIGTERM and for Ctrl-C, from the moment the loop runs.

    Not earlier, because uvloop forgets a signal that comes before it runs; until then a signal just ends the process.
    """

    def install() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)

    loop.call_soon(install)
