"""A shard without a cluster: a state machine with its log in memory, on virtual time.

It gives the guarantees of `quire.coordinators.runtime`: records are replayed at once, answered when they are committed,
and after a failed append the machine is thrown away and a new one replays the log. Records pass through their bytes, so
what is written can be read. Appends are committed at once unless `holding`; then they wait for `commit` or `fail`.
"""

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from quire.config.broker_config import BrokerConfig
from quire.coordinators.runtime.machine import MachineEnvironment, StateMachine, TimedOperation
from quire.coordinators.runtime.record import Origin, StateRecord, encode_key, encode_value
from quire.coordinators.runtime.result import CoordinatorResult, WrittenBy
from quire.metadata.image import ClusterImage
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import Random
from simulator.clock import SimClock, SimTimer
from simulator.random import SimRandom

M = TypeVar("M", bound=StateMachine)
R = TypeVar("R")


class SimTimers:
    """`Timers` on virtual time. An operation that fires goes through `SimShard.run`, like a request."""

    def __init__(self, clock: SimClock, run: Callable[[TimedOperation], object]) -> None:
        self._clock = clock
        self._run = run
        self._timers: dict[Hashable, SimTimer] = {}

    def schedule(self, key: Hashable, delay_ms: float, operation: TimedOperation) -> None:
        self.cancel(key)

        def fire() -> None:
            del self._timers[key]
            self._run(operation)

        self._timers[key] = self._clock.call_later(delay_ms, fire)

    def cancel(self, key: Hashable) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        for key in list(self._timers):
            self.cancel(key)

    @property
    def keys(self) -> list[Hashable]:
        """The scheduled operations, earliest first."""
        return sorted(self._timers, key=lambda key: (self._timers[key].when_ms, self._timers[key].sequence))


class LogEntry(NamedTuple):
    """A record in the log, or the end of a transaction (`key` is None, and `committed` is its result)."""

    key: bytes | None
    value: bytes | None
    written_by: WrittenBy | None = None
    committed: bool = False


class _Append(NamedTuple):
    entries: list[LogEntry]
    when_written: Callable[[ErrorCode], None] | None
    answer: Callable[[ErrorCode], None]


class SimShard(Generic[M]):
    """`make` builds the machine, initially and after every reload. `now_ms` is the wall clock that operations get."""

    def __init__(
        self,
        make: Callable[[MachineEnvironment], M],
        settings: Mapping[str, str] | None = None,
        *,
        clock: SimClock | None = None,
        seed: int | str = 0,
        image: ClusterImage | None = None,
    ) -> None:
        self.clock = clock or SimClock()
        self.config = BrokerConfig.standalone(settings)
        self.image = image or ClusterImage()
        self.log: list[LogEntry] = []
        """What is committed."""
        self.holding = False
        self.on_append: Callable[[StateRecord], None] | None = None
        """Called with every record that is written, for transcripts."""
        self.max_batch_bytes: int | None = None
        """Larger appends are refused with UNKNOWN_SERVER_ERROR, and the machine does not replay them."""
        self._make = make
        self.random: Random = SimRandom(seed)
        self._appends: deque[_Append] = deque()
        self._load()

    # --- Calls

    def run(self, operation: Callable[[int], CoordinatorResult[R]]) -> Pending[R | ApiError]:
        """The response, which is available at once if no append is pending."""
        answer: Pending[R | ApiError] = Pending()
        try:
            result = operation(self.clock.now_ms())
        except ApiError as error:
            refusal = error
            self._append(_Append([], None, lambda reason: answer.complete(_either(refusal, reason))))
            return answer
        if self._is_too_large(result.records):
            if result.when_written is not None:
                result.when_written(ErrorCode.MESSAGE_TOO_LARGE)
            answer.complete(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR))
            return answer
        response = result.response
        entries = [self._take_over(record, result.transaction) for record in result.records]
        if isinstance(response, Pending):
            self._append(_Append(entries, result.when_written, lambda reason: None))
            return response
        given = response
        self._append(_Append(entries, result.when_written, lambda reason: answer.complete(_either(given, reason))))
        return answer

    def end_transaction(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """A marker arrives in the log."""
        self.machine.replay_end(producer_id, producer_epoch, committed)
        self._append(
            _Append(
                [LogEntry(None, None, WrittenBy(producer_id, producer_epoch), committed)], None, lambda reason: None
            )
        )

    def wait(self, duration_ms: float) -> None:
        """Timers fire meanwhile."""
        self.clock.run_for(duration_ms)

    # --- Events

    @property
    def held(self) -> int:
        """Pending appends."""
        return len(self._appends)

    def commit(self, count: int | None = None) -> None:
        """Commits the oldest `count` appends that were held back, or all of them."""
        while self._appends and count != 0:
            append = self._appends.popleft()
            count = None if count is None else count - 1
            self.log += append.entries
            if append.when_written is not None:
                append.when_written(ErrorCode.NONE)
            append.answer(ErrorCode.NONE)

    def fail(self, reason: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE, *, kept: int = 0) -> None:
        """Appends that were held back are never reported as committed, although the first `kept` are in the log."""
        failed, self._appends = self._appends, deque()
        for number, append in enumerate(failed):
            if number < kept:
                self.log += append.entries
            if append.when_written is not None:
                append.when_written(reason)
        self.machine.unloaded(reason)
        for append in failed:
            append.answer(reason)
        assert not self._appends, "a machine that is done for wanted something written"
        self.timers.cancel_all()
        self._load()

    def reload(self, reason: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """The node loses the leadership and gets it back; appends that were held back are lost."""
        self.fail(reason)

    def change_image(self, image: ClusterImage) -> None:
        before, self.image = self.image, image
        names = sorted({*before.topics_by_name, *image.topics_by_name})
        changed = [name for name in names if _topic_id(before, name) != _topic_id(image, name)]
        self.machine.metadata_changed(changed, self.clock.now_ms())

    # --- Helpers

    def _environment(self) -> MachineEnvironment:
        return MachineEnvironment(
            self.config,
            self.random,
            self.timers,
            lambda: self.image,
            lambda: self.max_batch_bytes or self.config.get_int("message.max.bytes"),
        )

    def _load(self) -> None:
        self.timers = SimTimers(self.clock, self.run)
        self.machine = self._make(self._environment())
        self._offset = 0
        for entry in self.log:
            if entry.key is None:
                assert entry.written_by is not None
                self.machine.replay_end(*entry.written_by, entry.committed)
            else:
                self._replay(entry)
        self.machine.loaded(self.clock.now_ms())

    def _is_too_large(self, records: Sequence[StateRecord]) -> bool:
        if self.max_batch_bytes is None:
            return False
        return sum(len(encode_key(record.key)) + len(encode_value(record) or b"") for record in records) > (
            self.max_batch_bytes
        )

    def _take_over(self, record: StateRecord, transaction: WrittenBy | None) -> LogEntry:
        entry = LogEntry(encode_key(record.key), encode_value(record), transaction)
        if self.on_append is not None:
            self.on_append(record)
        self._replay(entry)
        return entry

    def _replay(self, entry: LogEntry) -> None:
        origin = Origin(self._offset) if entry.written_by is None else Origin(self._offset, *entry.written_by)
        self.machine.replay(self.machine.record_types.decode(entry.key, entry.value), origin)
        self._offset += 1

    def _append(self, append: _Append) -> None:
        self._appends.append(append)
        # A response without records is held back only if an earlier append is.
        if not self.holding or (len(self._appends) == 1 and not append.entries and append.when_written is None):
            self.commit()


def _either(response: Any, reason: ErrorCode) -> Any:
    return response if reason is ErrorCode.NONE else ApiError(reason)


def _topic_id(image: ClusterImage, name: str) -> bytes | None:
    topic = image.topic(name)
    return None if topic is None else topic.topic_id
