"""Runs blocking work in a few threads, and returns the results to the event loop.

Threads start when there is work for them, so a node that never blocks has none. Several jobs that end together wake the
loop once. The queue has no limit of its own, because its callers have limits: a log has one flush at a time, and a
connection one request. A limit would refuse flushes, and so turn a slow disk into a failed one.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_log = logging.getLogger("quire.jobs")


class _Job:
    __slots__ = ("computes", "done", "error", "failed", "result", "work")

    def __init__(
        self,
        work: Callable[[], Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None],
        computes: bool,
    ) -> None:
        self.work = work
        self.done = done
        self.failed = failed
        self.computes = computes
        self.result: Any = None
        self.error: Exception | None = None


class ThreadJobs:
    def __init__(self, loop: asyncio.AbstractEventLoop, *, threads: int = 4) -> None:
        self._loop = loop
        self._threads_max = threads
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._waiting: deque[_Job] = deque()
        self._idle = 0
        self._computing: set[threading.Thread] = set()
        """The (daemon) threads with work that the end of the process need not wait for."""
        self._finished: deque[_Job] = deque()
        self._stopped = False

    def submit(
        self,
        work: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None],
        *,
        computes: bool = False,
    ) -> None:
        job = _Job(work, done, failed, computes)
        with self._changed:
            if self._stopped:
                return
            self._waiting.append(job)
            if self._idle >= len(self._waiting):
                self._changed.notify()
            elif len(self._threads) < self._threads_max:
                self._start_thread()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._changed.notify_all()
            unfinished = [thread for thread in self._threads if thread not in self._computing]
        for thread in unfinished:
            thread.join()
        self._finished.clear()

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._run, name=f"quire-job-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                job.result = job.work()
            except Exception as error:
                job.error = error
            self._hand_back(job)

    def _next(self) -> _Job | None:
        with self._changed:
            self._idle += 1
            while not self._waiting and not self._stopped:
                self._changed.wait()
            self._idle -= 1
            job = self._waiting.popleft() if self._waiting else None
            if job is not None and job.computes:
                self._computing.add(threading.current_thread())
            else:
                self._computing.discard(threading.current_thread())
            return job

    def _hand_back(self, job: _Job) -> None:
        with self._changed:
            if self._stopped:
                return
            self._finished.append(job)
            wake = len(self._finished) == 1
        if wake:
            try:
                self._loop.call_soon_threadsafe(self._complete_finished)
            except RuntimeError:
                _log.warning("the event loop was closed before its jobs were stopped")

    def _complete_finished(self) -> None:
        with self._changed:
            finished, self._finished = self._finished, deque()
        for job in finished:
            self._complete(job)

    def _complete(self, job: _Job) -> None:
        if self._stopped:
            return
        try:
            if job.error is None:
                job.done(job.result)
            else:
                job.failed(job.error)
        except Exception:
            _log.exception("the callback of a job failed")
