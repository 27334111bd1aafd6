"""Runs long requests in slices, so that other requests are served in between.

The handler of such a request is a generator. It yields a `Pending` to wait for its value, and None where it may be
interrupted, which should be after every few dozen microseconds of work:

    def handle(node: "Node", context: Context, request: DescribeThingsRequest) -> Work[DescribeThingsResponse]:
        things = []
        for name in request.names:
            things.append(describe(name))
            yield None
        return DescribeThingsResponse(things=things)

A request starts at once, and most end in their first slice. All requests that start in one turn of the event loop share
one slice. Longer requests take turns, one slice of one request in each turn, so a small request waits for two slices at
most, however many long ones there are. Only a few long requests run at a time, because each may build a large response.
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
"""Work yields this to end its slice now."""

FIRST_STEPS = 8
"""The steps that a request may take before it needs a task."""
SLICE_MS = 5.0
LEAST_SLICE_MS = 0.25
"""The time that every request gets at once, even if others have used up the shared slice. Most need no more."""
STEPS_PER_SLICE = 1_000
"""The steps after which a slice ends too, because the simulator's time stands still while code runs."""
UNDER_WAY_MAX = 8


def outcome(pending: Pending[T | ApiError]) -> Work[T]:
    """Waits for a result, and raises it if it is an ApiError."""
    value = yield pending
    if isinstance(value, ApiError):
        raise value
    return value  # type: ignore[no-any-return]


def begin(work: Work[T]) -> T | Work[T]:
    """Takes the first steps. Returns the result if the work ends with them, as most does, or the rest of the work."""
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
    """The rest of work that has started and has yielded `waits_for`."""
    try:
        while True:
            value = yield waits_for
            waits_for = work.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        work.close()


class Slices:
    """The long requests of a node."""

    __slots__ = ("_at_once_ms", "_clock", "_idle_since_ms", "_scheduled", "_under_way", "_waiting")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._under_way: deque[_Task[Any]] = deque()
        """The tasks that take turns; the first one gets the next slice."""
        self._waiting: deque[_Task[Any]] = deque()
        """The tasks that start when others end or wait for something."""
        self._scheduled = False
        self._at_once_ms = SLICE_MS
        """What is left of the slice that is shared by requests which start or continue without waiting for their turn.
        It shrinks while they run and grows in between."""
        self._idle_since_ms = 0.0

    def run(self, work: Work[T], *, may_be_abandoned: bool = True) -> T | Pending[T | ApiError]:
        """Returns the result, or a `Pending` of it. Errors of the first slice are raised; later ones become the result.

        Requests that change something must not be abandoned, because the client's next request may depend on them.
        """
        task = _Task(work)
        try:
            waits_for = self._advance_at_once(task)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        if may_be_abandoned:
            task.result.on_abandoned = task.abandon
        self._wait_for_turn(task, waits_for, self._waiting)
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

    def _wait_for_turn(self, task: "_Task[Any]", waits_for: Pending[Any] | None, queue: "deque[_Task[Any]]") -> None:
        """Queues the task for its next slice, or continues it as soon as the value that it waits for is there."""
        if task.abandoned:
            task.abandon()
        elif waits_for is None:
            queue.append(task)
            self._schedule()
        else:
            task.waits_for = waits_for
            waits_for.when_done(lambda _: self._advance(task, self._waiting, self._advance_at_once))

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
                self._advance(task, self._under_way, self._advance_in_turn)
        finally:
            self._schedule()

    def _advance_in_turn(self, task: "_Task[Any]") -> Pending[Any] | None:
        return task.advance(self._clock, self._clock.monotonic_ms() + SLICE_MS)

    def _advance(
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
            self._wait_for_turn(task, waits_for, queue)


class _Task(Generic[T]):
    __slots__ = ("_work", "abandoned", "result", "waits_for")

    def __init__(self, work: Work[T]) -> None:
        self._work = work
        self.waits_for: Pending[Any] | None = None
        """The last value that the work has yielded."""
        self.result: Pending[T | ApiError] = Pending()
        self.abandoned = False

    def advance(self, clock: Clock, until_ms: float) -> Pending[Any] | None:
        """Runs one slice. Returns what the work waits for, or None if its time is up. StopIteration ends the work."""
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
        # The work may be running right now. Then this is called again after its step.
        with suppress(ValueError):
            self._work.close()
        if self.waits_for is not None:
            self.waits_for.abandon()
