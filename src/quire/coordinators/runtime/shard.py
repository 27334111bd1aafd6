"""Shard: one partition of an internal topic and the state machine that is kept in it.

`run` is the only entry: requests, timers and ends of transactions go through it one after the other. An operation
changes the machine at once. Its records are appended in order, one append at a time, and its response is sent when they
are committed. So the machine is ahead of the log by the records that are being written, and no client sees that state.
If an append fails or times out, the content of the log is unknown. Then waiting requests are refused, and the machine
is discarded and loaded from the log again.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from typing import Any, Generic, TypeVar

from quire.coordinators.runtime.loader import Loader
from quire.coordinators.runtime.machine import StateMachine, TimedOperation, Timers
from quire.coordinators.runtime.record import Origin
from quire.coordinators.runtime.result import CoordinatorResult, WrittenBy
from quire.coordinators.runtime.shard_timers import ShardTimers
from quire.coordinators.runtime.state_log import StateLog
from quire.coordinators.runtime.unsent import Batch, Unsent, Write, encoded
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import Clock, Timer
from quire.storage.producers.end_marker import build_end_marker

log = logging.getLogger("quire.coordinators")

M = TypeVar("M", bound=StateMachine)
R = TypeVar("R")

FIRST_RETRY_MS = 100.0
LONGEST_RETRY_MS = 30_000.0
LONGEST_WAIT_MS = 100.0
"""How long records that no request waits for are held back, to share an append with others."""


class ShardState(Enum):
    LOADING = auto()
    ACTIVE = auto()
    FAILED = auto()
    """The log could not be replayed. The shard retries."""
    UNLOADED = auto()


# Module constants, because a lookup of an enum member through its class is slow.
_ACTIVE = ShardState.ACTIVE
_NONE = ErrorCode.NONE

_REFUSALS = {
    ShardState.LOADING: (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the coordinator is replaying its log: try again"),
    ShardState.FAILED: (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "the coordinator cannot read its log: see the log of the node",
    ),
    ShardState.UNLOADED: (
        ErrorCode.NOT_COORDINATOR,
        "another node is the coordinator now: find it with FindCoordinator",
    ),
}


def _refusal(state: ShardState) -> ApiError:
    """A new exception each time, because an exception keeps the frames, and so the requests, that it passed."""
    return ApiError(*_REFUSALS[state])


_DeferredResponse = tuple[int, Pending[Any] | None, Any, Callable[[ErrorCode], None] | None]
"""(number, pending, its value, `when_written`): waits until operation `number` and all before it are committed."""


def _complete(
    pending: Pending[Any] | None, value: Any, when_written: Callable[[ErrorCode], None] | None, code: ErrorCode
) -> None:
    try:
        if when_written is not None:
            when_written(code)
        if pending is not None:
            pending.complete_once(value)
    except Exception:
        # A failure of one waiting request must not affect the others.
        log.exception("a response could not be delivered")


class Shard(Generic[M]):
    __slots__ = (
        "_append_offset",
        "_append_timer",
        "_clock",
        "_committed",
        "_deferred",
        "_in_flight",
        "_last_number",
        "_loader",
        "_machine",
        "_make_machine",
        "_max_batch_bytes",
        "_next_offset",
        "_retry_ms",
        "_retry_timer",
        "_send_timer",
        "_send_up_to",
        "_state_log",
        "_timers",
        "_unsent",
        "_write_timeout_ms",
        "leader_epoch",
        "name",
        "state",
    )

    def __init__(
        self,
        name: str,
        leader_epoch: int,
        state_log: StateLog,
        make_machine: Callable[[Timers], M],
        clock: Clock,
        *,
        max_batch_bytes: Callable[[], int],
        write_timeout_ms: int,
    ) -> None:
        self.name = name
        self.leader_epoch = leader_epoch
        self.state = ShardState.LOADING
        self._state_log = state_log
        self._make_machine = make_machine
        self._clock = clock
        self._max_batch_bytes = max_batch_bytes
        self._write_timeout_ms = write_timeout_ms
        self._unsent = Unsent(max_batch_bytes)
        self._deferred: deque[_DeferredResponse] = deque()
        self._last_number = 0
        """The number of the last operation that wrote records."""
        self._committed = 0
        """The number of the last operation whose records are committed."""
        self._append_offset = 0
        """The end of the log after the completed appends."""
        self._next_offset = 0
        """The end of the log after all records that are not appended yet."""
        self._send_up_to = 0
        """The number of the last operation that a request waits for. Later records can wait for the next one."""
        self._in_flight: Batch | None = None
        self._append_timer: Timer | None = None
        self._retry_timer: Timer | None = None
        self._send_timer: Timer | None = None
        self._retry_ms = FIRST_RETRY_MS
        self._timers: ShardTimers
        self._machine: M
        self._loader: Loader

    def __repr__(self) -> str:
        return f"Shard({self.name}, {self.state.name.lower()})"

    # --- Life cycle

    def load(self) -> None:
        self._retry_timer = None
        self.state = ShardState.LOADING
        self._timers = ShardTimers(self._clock, self._run_timed)
        self._machine = self._make_machine(self._timers)
        self._loader = Loader(self.name, self._state_log, self._machine, self._clock, self._loaded, self._load_failed)
        self._loader.start()

    def unload(self) -> None:
        """The node no longer leads the partition."""
        if self.state is not ShardState.UNLOADED:
            self._stop(ShardState.UNLOADED, _refusal(ShardState.UNLOADED))

    def metadata_changed(self, topics: Sequence[str]) -> None:
        """`topics` were created or deleted."""
        if self.state is ShardState.ACTIVE:
            self._machine.metadata_changed(topics, self._clock.now_ms())

    @property
    def machine(self) -> M:
        """For reading, while the shard is active."""
        self._check_active()
        return self._machine

    def _loaded(self, end_offset: int) -> None:
        self.state = ShardState.ACTIVE
        self._append_offset = self._next_offset = end_offset
        self._retry_ms = FIRST_RETRY_MS
        self._machine.loaded(self._clock.now_ms())

    def _load_failed(self, error: ApiError) -> None:
        # Without the leadership there is nothing to load, and nothing wrong with the log.
        tell = log.info if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER else log.error
        tell("%s cannot be loaded: %s", self.name, error.message)
        self._stop(ShardState.FAILED, _refusal(ShardState.FAILED))
        self._load_later()

    def _load_later(self) -> None:
        self._retry_timer = self._clock.call_later(self._retry_ms, self.load)
        self._retry_ms = min(self._retry_ms * 2, LONGEST_RETRY_MS)

    def _stop(self, state: ShardState, error: ApiError) -> None:
        was_active = self.state is ShardState.ACTIVE
        self.state = state
        self._loader.cancel()
        self._timers.cancel_all()
        for timer in (self._append_timer, self._retry_timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        self._append_timer = self._retry_timer = self._send_timer = None
        self._in_flight = None
        self._unsent.writes.clear()
        # No response waits for the discarded records. Later responses depend on the reloaded log only.
        self._committed = self._last_number
        deferred, self._deferred = self._deferred, deque()
        for _, pending, _, when_written in deferred:
            _complete(pending, error, when_written, error.code)
        if was_active:
            self._machine.unloaded(error.code)

    # --- Operations

    def run(self, operation: Callable[[M, int], CoordinatorResult[R]]) -> Pending[R | ApiError]:
        """Runs `operation(machine, now_ms)`. The Pending becomes its response, or the error that it was refused with.

        ApiError if the shard is not active.
        """
        if self.state is not _ACTIVE:
            raise _refusal(self.state)
        now_ms = self._clock.now_ms()
        try:
            result = operation(self._machine, now_ms)
        except ApiError as error:
            return self._respond(error)
        if result.records:
            refused = self._write(result, now_ms)
            if refused is not None:
                return refused
        response = result.response
        if isinstance(response, Pending):
            if result.when_written is not None:
                self._deferred.append((self._last_number, None, None, result.when_written))
            self._send()
            return response
        return self._respond(response, result.when_written, can_wait=result.can_wait)

    def end_transaction(
        self, producer_id: int, producer_epoch: int, *, committed: bool, coordinator_epoch: int
    ) -> Pending[ApiError | None]:
        """Writes the marker that ends a transaction in this log."""
        self._check_active()
        marker = build_end_marker(
            producer_id,
            producer_epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            timestamp=self._clock.now_ms(),
        )
        self._last_number += 1
        self._unsent.writes.append(Write(self._last_number, [], 0, marker=marker))
        self._next_offset += 1
        self._machine.replay_end(producer_id, producer_epoch, committed)
        return self._respond(None)

    def _check_active(self) -> None:
        if self.state is not ShardState.ACTIVE:
            raise _refusal(self.state)

    def _run_timed(self, operation: TimedOperation) -> None:
        if self.state is ShardState.ACTIVE:
            self.run(lambda _machine, now_ms: operation(now_ms)).when_done(self._timed_operation_done)

    def _timed_operation_done(self, error: ApiError | None) -> None:
        if error is not None and self.state is ShardState.ACTIVE:
            log.warning("%s: the operation of a timer was refused: %s", self.name, error.message)

    # --- Appends

    def _write(self, result: CoordinatorResult[R], now_ms: int) -> Pending[R | ApiError] | None:
        """Queues and replays the records. If they are too large for the log, it refuses them and changes nothing."""
        records, size = encoded(result.records, now_ms)
        most = self._max_batch_bytes()
        if size > most:
            if result.when_written is not None:
                result.when_written(ErrorCode.MESSAGE_TOO_LARGE)
            # Kafka's error: clients do not expect MESSAGE_TOO_LARGE from a coordinator.
            return self._respond(
                ApiError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"the records have {size} bytes, and {self.name} takes at most {most} in one batch",
                )
            )
        self._last_number += 1
        self._unsent.writes.append(Write(self._last_number, records, size, result.transaction))
        producer: WrittenBy | tuple[()] = result.transaction or ()
        for record in result.records:
            self._machine.replay(record, Origin(self._next_offset, *producer))
            self._next_offset += 1
        return None

    def _respond(
        self, value: Any, when_written: Callable[[ErrorCode], None] | None = None, can_wait: bool = False
    ) -> Pending[Any]:
        pending: Pending[Any] = Pending()
        self._deferred.append((self._last_number, pending, value, when_written))
        if not can_wait:
            self._send()
        elif self._send_timer is None:
            self._send_timer = self._clock.call_later(LONGEST_WAIT_MS, self._send_timer_fired)
        return pending

    def _send_timer_fired(self) -> None:
        self._send_timer = None
        self._send()

    def send_now(self) -> None:
        """Appends the records that can wait, too."""
        if self.state is ShardState.ACTIVE:
            self._send()

    def _send(self) -> None:
        """Appends what is unsent, as long as appends complete at once, and sends the responses that are due."""
        if self._unsent.writes:
            self._send_up_to = self._last_number
            self._send_wanted()
        else:
            self._complete_deferred()

    def _send_wanted(self) -> None:
        writes = self._unsent.writes
        while self._in_flight is None and writes and writes[0].number <= self._send_up_to:
            batch = self._in_flight = self._unsent.next_batch()
            appended = self._state_log.append(batch.content, self._append_offset)
            if appended.done:
                self._appended(batch, appended.value)
            else:
                self._append_timer = self._clock.call_later(self._write_timeout_ms, self._time_out)
                appended.when_done(partial(self._appended_late, batch))

    def _appended_late(self, batch: Batch, error: ApiError | None) -> None:
        self._appended(batch, error)
        self._send_wanted()

    def _appended(self, batch: Batch, error: ApiError | None) -> None:
        if self._in_flight is not batch:
            return  # The append timed out before.
        self._in_flight = None
        if self._append_timer is not None:
            self._append_timer.cancel()
            self._append_timer = None
        if error is not None:
            self._start_over(error)
            return
        self._append_offset += batch.offsets
        self._committed = batch.last_number
        self._complete_deferred()

    def _time_out(self) -> None:
        self._append_timer = None
        self._start_over(ApiError(ErrorCode.REQUEST_TIMED_OUT, "an append timed out"))

    def _start_over(self, error: ApiError) -> None:
        log.warning("%s is loaded again, because an append failed: %s", self.name, error.message)
        self._stop(ShardState.LOADING, ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message))
        self._load_later()

    def _complete_deferred(self) -> None:
        deferred = self._deferred
        while deferred and deferred[0][0] <= self._committed and deferred is self._deferred:
            _, pending, value, when_written = deferred.popleft()
            _complete(pending, value, when_written, _NONE)
