"""Requests whose work may take long, done in slices: other requests are served between two of them.

The handler of such a request is a generator. It yields a `Pending` to wait for it and get its value, or None wherever
it may be interrupted, which should be after every few dozen microseconds of work:

    def handle(node: "Node", context: Context, request: DescribeThingsRequest) -> Work[DescribeThingsResponse]:
        things = []
        for name in request.names:
            things.append(describe(name))
            yield None
        return DescribeThingsResponse(things=things)

A request begins at once, and most are done with that; all that come together share one slice for it. The others take
turns, one slice of one request in each round, so a small request waits for two slices at most, however many long ones
there are. Only a few of these are under way at a time, because each may be building a large answer.
"""

import logging
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Generic, TypeVar

from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import Clock

log = logging.getLogger("quire.requests")

T = TypeVar("T")
Work = Generator[Pending[Any] | None, Any, T]

TURN: Pending[None] = completed(None)
"""What work yields that should wait for its turn now, instead of going on at once."""

FIRST_STEPS = 8
"""What a request does before anything is set up for more of it."""
SLICE_MS = 5.0
LEAST_SLICE_MS = 0.25
"""What a request gets at once even if others have used up the slice of this round: most need no more."""
STEPS_PER_SLICE = 1_000
"""Ends a slice too: the time of the simulator stands still while code runs."""
UNDER_WAY_MAX = 8


def outcome(pending: Pending[T | ApiError]) -> Work[T]:
    """Waits for what may be refused; raises the refusal."""
    value = yield pending
    if isinstance(value, ApiError):
        raise value
    return value  # type: ignore[no-any-return]


def begin(work: Work[T]) -> T | Work[T]:
    """Takes the first few steps. The result if these were all, as they mostly are, or else the rest of the work."""
    waits_for: Pending[Any] | None = None
    try:
        for _ in range(FIRST_STEPS):
            waits_for = work.send(None if waits_for is None else waits_for.value)
            if waits_for is not None and not waits_for.done:
                break
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    return _resumed(work, waits_for)


def _resumed(work: Work[T], waits_for: Pending[Any] | None) -> Work[T]:
    """The rest of work that has begun, and has yielded `waits_for`."""
    try:
        while True:
            value = yield waits_for
            waits_for = work.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        work.close()


class Slices:
    """All long requests of a node."""

    __slots__ = ("_at_once_ms", "_clock", "_idle_since_ms", "_scheduled", "_under_way", "_waiting")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._under_way: deque[_Task[Any]] = deque()
        """The next one to get a slice first."""
        self._waiting: deque[_Task[Any]] = deque()
        """For others to finish, or to wait for something."""
        self._scheduled = False
        self._at_once_ms = SLICE_MS
        """What is left of the slice that requests share which begin, or go on, without waiting for their turn. It is
        used up by them, and grows again while none of them runs."""
        self._idle_since_ms = 0.0

    def run(self, work: Work[T], *, may_be_abandoned: bool = True) -> T | Pending[T | ApiError]:
        """The result, or what becomes it. Raises what the first slice raises; a later error becomes the result.

        What changes something must not be abandoned: its client's next request rests on it.
        """
        task = _Task(work)
        try:
            waits_for = self._advance_at_once(task)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        if may_be_abandoned:
            task.result.on_abandoned = task.abandon
        self._go_on(task, waits_for, self._waiting)
        return task.result

    def _advance_at_once(self, task: "_Task[Any]") -> Pending[Any] | None:
        clock = self._clock
        began_ms = clock.monotonic_ms()
        left_ms = min(SLICE_MS, self._at_once_ms + began_ms - self._idle_since_ms)
        try:
            return task.advance(clock, began_ms + max(left_ms, LEAST_SLICE_MS))
        finally:
            self._idle_since_ms = ended_ms = clock.monotonic_ms()
            self._at_once_ms = max(0.0, left_ms - (ended_ms - began_ms))

    def _go_on(self, task: "_Task[Any]", waits_for: Pending[Any] | None, queue: "deque[_Task[Any]]") -> None:
        """Gives the task its next slice when it is its turn, or at once when what it waits for is there."""
        if task.abandoned:
            task.abandon()
        elif waits_for is None:
            queue.append(task)
            self._schedule()
        else:
            task.waits_for = waits_for
            waits_for.when_done(lambda _: self._continue(task, self._waiting, self._advance_at_once))

    def _schedule(self) -> None:
        if not self._scheduled and (self._under_way or self._waiting):
            self._scheduled = True
            self._clock.call_soon(self._run_slice)

    def _run_slice(self) -> None:
        self._scheduled = False
        while self._waiting and len(self._under_way) < UNDER_WAY_MAX:
            self._under_way.append(self._waiting.popleft())
        task = self._under_way.popleft()
        try:
            if not task.abandoned:
                self._continue(task, self._under_way, self._advance_in_turn)
        finally:
            self._schedule()

    def _advance_in_turn(self, task: "_Task[Any]") -> Pending[Any] | None:
        return task.advance(self._clock, self._clock.monotonic_ms() + SLICE_MS)

    def _continue(
        self,
        task: "_Task[Any]",
        queue: "deque[_Task[Any]]",
        advance: "Callable[[_Task[Any]], Pending[Any] | None]",
    ) -> None:
        try:
            waits_for = advance(task)
        except StopIteration as end:
            task.result.complete_once(end.value)
        except ApiError as error:
            task.result.complete_once(error)
        except Exception:
            log.exception("a request failed unexpectedly")
            task.result.complete_once(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the node failed on this request"))
        else:
            self._go_on(task, waits_for, queue)


class _Task(Generic[T]):
    __slots__ = ("_work", "abandoned", "result", "waits_for")

    def __init__(self, work: Work[T]) -> None:
        self._work = work
        self.waits_for: Pending[Any] | None = None
        """What the work has yielded last."""
        self.result: Pending[T | ApiError] = Pending()
        self.abandoned = False

    def advance(self, clock: Clock, until_ms: float) -> Pending[Any] | None:
        """One slice; returns what the work has to wait for, or None if only its time is up. Raises StopIteration."""
        send = self._work.send
        waits_for = self.waits_for
        for _ in range(STEPS_PER_SLICE):
            waits_for = send(None if waits_for is None else waits_for.value)
            if waits_for is not None and not waits_for.done:
                return waits_for
            if waits_for is TURN or clock.monotonic_ms() >= until_ms:
                break
        self.waits_for = waits_for
        return None

    def abandon(self) -> None:
        self.abandoned = True
        # It may be what is running now: then this is called again after its step.
        with suppress(ValueError):
            self._work.close()
        if self.waits_for is not None:
            self.waits_for.abandon()
