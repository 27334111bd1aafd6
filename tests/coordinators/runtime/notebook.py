"""A minimal state machine, numbers by name, and a log in memory that fails on request."""

from collections.abc import Callable, Sequence

from quire.coordinators.runtime.machine import Timers
from quire.coordinators.runtime.record import Origin, RecordTypes, StateRecord
from quire.coordinators.runtime.result import CoordinatorResult, WrittenBy
from quire.coordinators.runtime.shard import Shard
from quire.coordinators.runtime.state_log import Bounds
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.transaction_records import KEY_TYPES, VALUE_TYPES, TransactionLogKey, TransactionLogValue
from quire.protocol.records.batch import patch, read_header
from quire.seams import Buffer
from simulator.clock import SimClock

WRITE_TIMEOUT_MS = 5_000


def note(name: str, number: int) -> StateRecord:
    return StateRecord(TransactionLogKey(transactional_id=name), TransactionLogValue(producer_id=number))


class Notebook:
    record_types = RecordTypes(KEY_TYPES, VALUE_TYPES)

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.numbers: dict[str, int] = {}
        self.offsets: dict[str, int] = {}
        self.open: dict[int, dict[str, int]] = {}
        self.replayed = 0
        self.is_loaded = False
        self.unloaded_with: ErrorCode | None = None

    # --- The machine

    def replay(self, record: StateRecord, origin: Origin) -> None:
        self.replayed += 1
        assert isinstance(record.key, TransactionLogKey)
        numbers = self.numbers if not origin.is_transactional else self.open.setdefault(origin.producer_id, {})
        name = record.key.transactional_id
        if isinstance(record.value, TransactionLogValue):
            numbers[name] = record.value.producer_id
            self.offsets[name] = origin.offset
        else:
            numbers.pop(name, None)

    def replay_end(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        pending = self.open.pop(producer_id, {})
        if committed:
            self.numbers.update(pending)

    def loaded(self, now_ms: int) -> None:
        self.is_loaded = True

    def unloaded(self, reason: ErrorCode) -> None:
        self.unloaded_with = reason

    def metadata_changed(self, topics: Sequence[str], now_ms: int) -> None:
        pass

    # --- Its operations

    def put(self, name: str, number: int, transaction: WrittenBy | None = None) -> CoordinatorResult[int]:
        return CoordinatorResult(number, [note(name, number)], transaction=transaction)

    def get(self, name: str) -> CoordinatorResult[int]:
        if name not in self.numbers:
            raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, f"nothing is noted about {name}")
        return CoordinatorResult(self.numbers[name])


class MemoryLog:
    """Batches in memory. While `holding`, appends wait for `release`, which may carry them out, lose or refuse them."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.end = 0
        self.holding = False
        self.held: list[tuple[bytearray, int, Pending[ApiError | None]]] = []
        self.read_error: ApiError | None = None
        self.largest_read = 3
        self.largest_read_bytes: int | None = None
        """A read ends after this many bytes, even within a batch; but its first batch is complete, as in a
        partition."""

    def bounds(self) -> Pending[Bounds | ApiError]:
        return completed(self.read_error or Bounds(0, self.end))

    def read(self, offset: int) -> Pending[Buffer | ApiError]:
        behind = [batch for batch in self.batches if read_header(batch).next_offset > offset]
        found = b"".join(behind[: self.largest_read])
        if self.largest_read_bytes is not None and behind:
            found = found[: max(self.largest_read_bytes, len(behind[0]))]
        return completed(found)

    def append(self, batch: bytearray, expected_offset: int) -> Pending[ApiError | None]:
        answer: Pending[ApiError | None] = Pending()
        if self.holding:
            self.held.append((batch, expected_offset, answer))
        else:
            answer.complete(self._append(batch, expected_offset))
        return answer

    def release(self, *, answered: bool = True, refusal: ApiError | None = None) -> None:
        """Completes the oldest append: it is written to the log unless it is refused, with or without a response."""
        batch, expected_offset, answer = self.held.pop(0)
        outcome = refusal or self._append(batch, expected_offset)
        if answered:
            answer.complete(outcome)

    def _append(self, batch: bytearray, expected_offset: int) -> ApiError | None:
        if expected_offset != self.end:
            return ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the log ends at {self.end}")
        patch(batch, 0, self.end, 1)
        self.batches.append(bytes(batch))
        self.end = read_header(batch).next_offset
        return None


class Desk:
    """A shard with a notebook, its log and the time."""

    def __init__(self, log: MemoryLog | None = None, *, max_batch_bytes: int = 10_000) -> None:
        self.clock = SimClock()
        self.log = log or MemoryLog()
        self.max_batch_bytes = max_batch_bytes
        self.notebooks: list[Notebook] = []
        self.shard: Shard[Notebook] = Shard(
            "notes-0",
            1,
            self.log,
            self._notebook,
            self.clock,
            max_batch_bytes=lambda: self.max_batch_bytes,
            write_timeout_ms=WRITE_TIMEOUT_MS,
        )
        self.shard.load()
        self.clock.run_for(1)

    def _notebook(self, timers: Timers) -> Notebook:
        self.notebooks.append(Notebook(timers))
        return self.notebooks[-1]

    @property
    def notebook(self) -> Notebook:
        return self.notebooks[-1]

    def put(self, name: str, number: int, transaction: WrittenBy | None = None) -> Pending[int | ApiError]:
        return self.shard.run(lambda notebook, _now: notebook.put(name, number, transaction))

    def get(self, name: str) -> Pending[int | ApiError]:
        return self.shard.run(lambda notebook, _now: notebook.get(name))

    def run(self, operation: Callable[[Notebook], CoordinatorResult[int]]) -> Pending[int | ApiError]:
        return self.shard.run(lambda notebook, _now: operation(notebook))
