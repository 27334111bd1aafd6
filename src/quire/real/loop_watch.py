"""Logs what holds the event loop: all requests of all clients wait meanwhile.

A thread schedules a callback on the loop again and again. If the loop's thread uses more than `limit_ms` of processor
time before it runs the callback, its stack at that time is logged. Processor time and not elapsed time, because on a
busy machine the loop may have to wait for a core. The watch costs a few wake-ups per second, so it is off unless
`quire.loop.watch.ms` is set; the tests run with it.
"""

import asyncio
import gc
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType

log = logging.getLogger("quire.loop")

_FRAMES = 12
"""How many of the innermost frames are logged: the outer ones are the same for all requests."""

HELD = "held the event loop for"
"""The text of the log line, by which tests find it."""


class LoopWatch:
    """Watches the loop of the thread that creates this."""

    __slots__ = (
        "_collected_s",
        "_collecting_since_s",
        "_limit_s",
        "_loop",
        "_stopping",
        "_thread",
        "_thread_id",
        "_used_s",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_ms: int) -> None:
        self._loop = loop
        self._limit_s = limit_ms / 1000
        self._thread_id = threading.get_ident()
        self._used_s = _processor_time(self._thread_id)
        self._collected_s = 0.0
        """How long the garbage collector has run so far. It may start in any code, so it does not count."""
        self._collecting_since_s = 0.0
        gc.callbacks.append(self._collecting)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="loop-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        gc.callbacks.remove(self._collecting)
        self._stopping.set()
        self._thread.join()

    def _collecting(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_since_s = self._used_s()
        else:
            self._collected_s += self._used_s() - self._collecting_since_s

    def _watch(self) -> None:
        while not self._stopping.wait(self._limit_s):
            answered = threading.Event()
            asked_s, collected_s = self._used_s(), self._collected_s
            try:
                self._loop.call_soon_threadsafe(answered.set)
            except RuntimeError:
                return  # The loop is closed.
            stack = self._wait_for(answered, asked_s)
            collecting_s = self._collected_s - collected_s
            held_s = self._used_s() - asked_s - collecting_s
            if stack is not None and held_s >= self._limit_s:
                log.warning("this %s %d ms:\n%s", HELD, held_s * 1000, stack)
            elif collecting_s >= self._limit_s:
                log.info("garbage collection took %d ms", collecting_s * 1000)

    def _wait_for(self, answered: threading.Event, asked_s: float) -> str | None:
        """The stack of the loop's thread when the limit was exceeded, if it was."""
        stack = None
        while not answered.wait(self._limit_s / 5) and not self._stopping.is_set():
            if stack is None and self._used_s() - asked_s >= self._limit_s:
                stack = _stack(sys._current_frames().get(self._thread_id))
        return stack


def _processor_time(thread_id: int) -> Callable[[], float]:
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic
    clock = time.pthread_getcpuclockid(thread_id)
    return lambda: time.clock_gettime(clock)


def _stack(frame: FrameType | None) -> str:
    return "".join(traceback.format_stack(frame, limit=_FRAMES)) if frame is not None else ""
