"""One partition of an internal topic and the state machine that is kept in it.

`run` is the only door: requests, timers and transactions' ends go through it one after the other. An operation changes
the machine at once, its records go to the log in order, one append at a time, and its answer is given when they are
committed. So the machine runs ahead of the log by what is on its way, and nobody outside hears of that. When an append
fails, or nothing is heard of it, nobody knows what the log holds: whoever waits is refused, and the machine is thrown
away and replayed from the log.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, Generic, TypeVar

from quire.coordinators.runtime.loader import Loader
from quire.coordinators.runtime.machine import StateMachine, TimedOperation, Timers
from quire.coordinators.runtime.record import Origin
from quire.coordinators.runtime.result import Result, WrittenBy
from quire.coordinators.runtime.shard_timers import ShardTimers
from quire.coordinators.runtime.state_log import StateLog
from quire.coordinators.runtime.unsent import Batch, Unsent, Write, encoded
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import Clock, Timer
from quire.storage.end_marker import build_end_marker

log = logging.getLogger("quire.coordinators")

M = TypeVar("M", bound=StateMachine)
R = TypeVar("R")

FIRST_RETRY_MS = 100.0
LONGEST_RETRY_MS = 30_000.0
LONGEST_WAIT_MS = 100.0
"""Of records that nobody waits for, for others to share an append with."""


class State(Enum):
    LOADING = auto()
    ACTIVE = auto()
    FAILED = auto()
    """Its log cannot be replayed; that is tried again."""
    UNLOADED = auto()


# An enum's member is looked up anew each time it is named by its class.
_ACTIVE = State.ACTIVE
_NONE = ErrorCode.NONE

_REFUSALS = {
    State.LOADING: (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the coordinator is replaying its log: try again"),
    State.FAILED: (ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator cannot read its log: see the node's"),
    State.UNLOADED: (ErrorCode.NOT_COORDINATOR, "another node coordinates this now: ask for it again"),
}


def _refusal(state: State) -> ApiError:
    """A new one each time: an exception keeps the frames, and so the requests, of every place it was raised in."""
    return ApiError(*_REFUSALS[state])


_Answer = tuple[int, Pending[Any] | None, Any, Callable[[ErrorCode], None] | None]
"""Who waits for operation `number` and all before it to be committed: number, pending, its value, `when_written`."""


def _give(
    pending: Pending[Any] | None, value: Any, when_written: Callable[[ErrorCode], None] | None, code: ErrorCode
) -> None:
    try:
        if when_written is not None:
            when_written(code)
        if pending is not None:
            pending.complete_once(value)
    except Exception:
        # One waiter's trouble with its answer must not keep the others from theirs.
        log.exception("an answer could not be delivered")


class Shard(Generic[M]):
    __slots__ = (
        "_answers",
        "_append_offset",
        "_append_timer",
        "_clock",
        "_committed",
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
        self.state = State.LOADING
        self._state_log = state_log
        self._make_machine = make_machine
        self._clock = clock
        self._max_batch_bytes = max_batch_bytes
        self._write_timeout_ms = write_timeout_ms
        self._unsent = Unsent(max_batch_bytes)
        self._answers: deque[_Answer] = deque()
        self._last_number = 0
        """Of the operation that wrote last."""
        self._committed = 0
        """The number of the last operation whose records are committed."""
        self._append_offset = 0
        """Where the log ends, as far as appends have been answered."""
        self._next_offset = 0
        """Where it ends when everything that is on its way has arrived."""
        self._send_up_to = 0
        """The number of the last operation that somebody waits for; what comes after it can wait for the next."""
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

    # Loading and unloading

    def load(self) -> None:
        self._retry_timer = None
        self.state = State.LOADING
        self._timers = ShardTimers(self._clock, self._fire)
        self._machine = self._make_machine(self._timers)
        self._loader = Loader(self.name, self._state_log, self._machine, self._clock, self._loaded, self._load_failed)
        self._loader.start()

    def unload(self) -> None:
        """This node does not lead the partition any more."""
        if self.state is not State.UNLOADED:
            self._stop(State.UNLOADED, _refusal(State.UNLOADED))

    def metadata_changed(self, topics: Sequence[str]) -> None:
        """`topics` were created or deleted."""
        if self.state is State.ACTIVE:
            self._machine.metadata_changed(topics, self._clock.now_ms())

    @property
    def machine(self) -> M:
        """For looking at, while the shard is active."""
        self._check_active()
        return self._machine

    def _loaded(self, end_offset: int) -> None:
        self.state = State.ACTIVE
        self._append_offset = self._next_offset = end_offset
        self._retry_ms = FIRST_RETRY_MS
        self._machine.loaded(self._clock.now_ms())

    def _load_failed(self, error: ApiError) -> None:
        log.error("%s cannot be loaded: %s", self.name, error.message)
        self._stop(State.FAILED, _refusal(State.FAILED))
        self._load_later()

    def _load_later(self) -> None:
        self._retry_timer = self._clock.call_later(self._retry_ms, self.load)
        self._retry_ms = min(self._retry_ms * 2, LONGEST_RETRY_MS)

    def _stop(self, state: State, error: ApiError) -> None:
        was_active = self.state is State.ACTIVE
        self.state = state
        self._loader.cancel()
        self._timers.cancel_all()
        for timer in (self._append_timer, self._retry_timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        self._append_timer = self._retry_timer = self._send_timer = None
        self._in_flight = None
        self._unsent.writes.clear()
        # Nobody waits for what was given up: from here on answers rest on what will be found in the log.
        self._committed = self._last_number
        answers, self._answers = self._answers, deque()
        for _, pending, _, when_written in answers:
            _give(pending, error, when_written, error.code)
        if was_active:
            self._machine.unloaded(error.code)

    # Operations

    def run(self, operation: Callable[[M, int], Result[R]]) -> Pending[R | ApiError]:
        """Runs `operation` on (machine, now); what comes back becomes its response, or the error it was refused with.

        ApiError when the shard is not active.
        """
        if self.state is not _ACTIVE:
            raise _refusal(self.state)
        now_ms = self._clock.now_ms()
        try:
            result = operation(self._machine, now_ms)
        except ApiError as error:
            return self._answer(error)
        if result.records:
            refused = self._write(result, now_ms)
            if refused is not None:
                return refused
        response = result.response
        if isinstance(response, Pending):
            if result.when_written is not None:
                self._answers.append((self._last_number, None, None, result.when_written))
            self._send()
            return response
        return self._answer(response, result.when_written, can_wait=result.can_wait)

    def end_transaction(
        self, producer_id: int, producer_epoch: int, *, committed: bool, coordinator_epoch: int
    ) -> Pending[ApiError | None]:
        """Ends what a transaction wrote to this shard's log, by a marker."""
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
        return self._answer(None)

    def _check_active(self) -> None:
        if self.state is not State.ACTIVE:
            raise _refusal(self.state)

    def _fire(self, operation: TimedOperation) -> None:
        if self.state is State.ACTIVE:
            self.run(lambda _machine, now_ms: operation(now_ms)).when_done(self._timer_done)

    def _timer_done(self, outcome: ApiError | None) -> None:
        if outcome is not None and self.state is State.ACTIVE:
            log.warning("%s: what a timer asked for was refused: %s", self.name, outcome.message)

    # Writing

    def _write(self, result: Result[R], now_ms: int) -> Pending[R | ApiError] | None:
        """Queues and replays the records; what is too large for the log is refused before anything has changed."""
        records, size = encoded(result.records, now_ms)
        most = self._max_batch_bytes()
        if size > most:
            if result.when_written is not None:
                result.when_written(ErrorCode.MESSAGE_TOO_LARGE)
            # As Kafka answers: no client expects to hear of messages from a coordinator.
            return self._answer(
                ApiError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"what is to be kept has {size} bytes, and {self.name} takes {most} at once",
                )
            )
        self._last_number += 1
        self._unsent.writes.append(Write(self._last_number, records, size, result.transaction))
        producer: WrittenBy | tuple[()] = result.transaction or ()
        for record in result.records:
            self._machine.replay(record, Origin(self._next_offset, *producer))
            self._next_offset += 1
        return None

    def _answer(
        self, value: Any, when_written: Callable[[ErrorCode], None] | None = None, can_wait: bool = False
    ) -> Pending[Any]:
        pending: Pending[Any] = Pending()
        self._answers.append((self._last_number, pending, value, when_written))
        if not can_wait:
            self._send()
        elif self._send_timer is None:
            self._send_timer = self._clock.call_later(LONGEST_WAIT_MS, self._waited)
        return pending

    def _waited(self) -> None:
        self._send_timer = None
        self._send()

    def send_now(self) -> None:
        """Appends also what could wait."""
        if self.state is State.ACTIVE:
            self._send()

    def _send(self) -> None:
        """Appends what is unsent, as long as appends are answered at once, and gives the answers that are due."""
        if self._unsent.writes:
            self._send_up_to = self._last_number
            self._send_wanted()
        else:
            self._give_answers()

    def _send_wanted(self) -> None:
        writes = self._unsent.writes
        while self._in_flight is None and writes and writes[0].number <= self._send_up_to:
            batch = self._in_flight = self._unsent.next_batch()
            appended = self._state_log.append(batch.content, self._append_offset)
            if appended.done:
                self._appended(batch, appended.value)
            else:
                self._append_timer = self._clock.call_later(self._write_timeout_ms, self._time_out)
                appended.when_done(lambda error, batch=batch: self._appended_late(batch, error))  # type: ignore[misc]

    def _appended_late(self, batch: Batch, error: ApiError | None) -> None:
        self._appended(batch, error)
        self._send_wanted()

    def _appended(self, batch: Batch, error: ApiError | None) -> None:
        if self._in_flight is not batch:
            return  # It was given up before.
        self._in_flight = None
        if self._append_timer is not None:
            self._append_timer.cancel()
            self._append_timer = None
        if error is not None:
            self._start_over(error)
            return
        self._append_offset += batch.offsets
        self._committed = batch.last_number
        self._give_answers()

    def _time_out(self) -> None:
        self._append_timer = None
        self._start_over(ApiError(ErrorCode.REQUEST_TIMED_OUT, "an append was not answered in time"))

    def _start_over(self, error: ApiError) -> None:
        log.warning("%s is replayed again, because its log did not take a change: %s", self.name, error.message)
        self._stop(State.LOADING, ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message))
        self._load_later()

    def _give_answers(self) -> None:
        answers = self._answers
        while answers and answers[0][0] <= self._committed and answers is self._answers:
            _, pending, value, when_written = answers.popleft()
            _give(pending, value, when_written, _NONE)
