"""Loader: replays a partition of an internal topic into a new state machine.

Of plain records only the last one of each key counts, as after compaction, so only that one is decoded. A log with a
million commits of a hundred thousand offsets takes the time of a hundred thousand records. Records of transactions and
the markers that end them are replayed one by one, in log order.
"""

import logging
from collections.abc import Callable

from quire.coordinators.runtime.latest_native import remember_latest
from quire.coordinators.runtime.machine import StateMachine
from quire.coordinators.runtime.record import Origin, UnknownRecordError
from quire.coordinators.runtime.state_log import Bounds, StateLog
from quire.protocol.errors import ApiError, ErrorCode, ProtocolError
from quire.protocol.records import HEADER_BYTES, BatchHeader, decode_batch, read_header
from quire.seams import Buffer, Clock
from quire.storage.producers.end_marker import is_end_marker, read_end_marker

log = logging.getLogger("quire.coordinators")

REPLAYED_AT_ONCE = 2_000
"""Records per turn of the event loop. They take some tens of milliseconds."""

KeyedRecord = tuple[bytes, tuple[int, bytes | None]]
"""(key, (offset, value))"""


class Loader:
    """Calls `done` with the end offset when the log is replayed, or `failed`. Calls neither after `cancel`."""

    __slots__ = (
        "_cancelled",
        "_clock",
        "_done",
        "_end",
        "_failed",
        "_latest",
        "_log",
        "_machine",
        "_name",
        "_next",
        "_read_from",
    )

    def __init__(
        self,
        name: str,
        state_log: StateLog,
        machine: StateMachine,
        clock: Clock,
        done: Callable[[int], None],
        failed: Callable[[ApiError], None],
    ) -> None:
        self._name = name
        self._log = state_log
        self._machine = machine
        self._clock = clock
        self._done = done
        self._failed = failed
        self._cancelled = False
        self._next = 0
        self._read_from = 0
        """Where the last read began. Each read must return at least one batch."""
        self._end = 0
        self._latest: dict[bytes, tuple[int, bytes | None]] = {}
        """The last plain record of each key, in log order."""

    def start(self) -> None:
        self._log.bounds().when_done(self._found_bounds)

    def cancel(self) -> None:
        self._cancelled = True

    def _found_bounds(self, bounds: Bounds | ApiError) -> None:
        if self._cancelled:
            return
        if isinstance(bounds, ApiError):
            self._failed(bounds)
            return
        self._next, self._end = bounds
        self._read_on()

    def _read_on(self) -> None:
        if self._cancelled:
            return
        if self._next < self._end:
            self._log.read(self._next).when_done(self._read)
        else:
            self._replay_in_parts(self._take_latest()[::-1], lambda: self._done(self._end))

    def _read(self, batches: Buffer | ApiError) -> None:
        if self._cancelled:
            return
        if isinstance(batches, ApiError):
            self._failed(batches)
        elif not batches:
            # Compaction may have removed the last records.
            self._next = self._end
            self._read_on()
        else:
            self._read_from = self._next
            self._take_on(bytes(batches), 0)

    def _take_on(self, source: bytes, position: int) -> None:
        if self._cancelled:
            return
        taken_to = position

        def take() -> None:
            nonlocal taken_to
            taken_to = self._take(source, position)
            if taken_to == len(source) and self._next == self._read_from:
                raise self._corrupt(f"no complete batch in the {len(source)} bytes from offset {self._next} on")

        if not self._succeeds(take):
            return
        # The event loop serves other requests between two reads, and while many records are replayed.
        if taken_to == len(source):
            self._clock.call_soon(self._read_on)
        else:
            latest = self._take_latest()[::-1]
            self._clock.call_soon(lambda: self._replay_in_parts(latest, lambda: self._take_on(source, taken_to)))

    def _replay_in_parts(self, left: list[KeyedRecord], then: Callable[[], None]) -> None:
        """`left` has the next record last, and shrinks, so that replayed records are freed."""
        if self._cancelled:
            return
        part, left[-REPLAYED_AT_ONCE:] = left[: -REPLAYED_AT_ONCE - 1 : -1], []
        if not part:
            then()
        elif self._succeeds(lambda: self._replay_part(part)):
            self._clock.call_soon(lambda: self._replay_in_parts(left, then))

    def _replay_part(self, part: list[KeyedRecord]) -> None:
        for key, (offset, value) in part:
            self._replay(key, value, Origin(offset))

    def _succeeds(self, step: Callable[[], None]) -> bool:
        try:
            step()
        except ApiError as error:
            self._failed(error)
            return False
        except Exception as error:
            log.exception("%s cannot be replayed", self._name)
            self._failed(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{self._name} cannot be replayed: {error!r}"))
            return False
        return True

    def _take(self, source: bytes, position: int) -> int:
        """Takes plain batches together and special ones one by one.

        Returns the position that it reached: the end, unless there are so many records to replay first that the event
        loop should have a turn.
        """
        replayed = 0
        while True:
            position, self._next = self._remember(source, position)
            if position == len(source):
                return position
            # A read may end within a batch, even within its header. The next read has that batch.
            if len(source) - position < HEADER_BYTES:
                return len(source)
            header = read_header(source, position)
            if header.end > len(source):
                return len(source)
            if header.last_offset >= self._next:
                is_replayed = header.is_control or header.is_transactional
                if is_replayed and replayed + len(self._latest) >= REPLAYED_AT_ONCE:
                    return position
                replayed += len(self._latest) + header.record_count if is_replayed else 0
                self._take_special(source, header)
                self._next = header.next_offset
            position = header.end

    def _remember(self, source: bytes, position: int) -> tuple[int, int]:
        try:
            return remember_latest(self._latest, source, position, self._next)
        except ValueError as error:
            raise self._corrupt(f"a batch that cannot be read, from offset {self._next} on: {error}") from None

    def _take_special(self, source: bytes, header: BatchHeader) -> None:
        if header.is_control:
            self._replay_part(self._take_latest())
            self._end_transaction(source, header)
        elif header.is_transactional:
            self._replay_part(self._take_latest())
            for record in decode_batch(source, header):
                origin = Origin(record.offset, header.producer_id, header.producer_epoch)
                self._replay(record.key, record.value, origin)
        else:
            self._remember_compressed(source, header)

    def _remember_compressed(self, source: bytes, header: BatchHeader) -> None:
        for record in decode_batch(source, header):
            key = record.key
            if key is None:
                raise self._corrupt(f"a record without a key at offset {record.offset}")
            if record.offset >= self._next:
                self._latest.pop(key, None)
                self._latest[key] = (record.offset, record.value)

    def _take_latest(self) -> list[KeyedRecord]:
        latest, self._latest = self._latest, {}
        return list(latest.items())

    def _end_transaction(self, batches: Buffer, header: BatchHeader) -> None:
        marker = read_end_marker(batches, header) if is_end_marker(header) else None
        if marker is not None:
            self._machine.replay_end(header.producer_id, header.producer_epoch, not marker.aborts)

    def _replay(self, key: bytes | None, value: bytes | None, origin: Origin) -> None:
        try:
            record = self._machine.record_types.decode(key, value)
        except UnknownRecordError as error:
            log.warning(
                "%s: the record at offset %d is newer than this version, and is skipped: %s",
                self._name,
                origin.offset,
                error,
            )
            return
        except ProtocolError as error:
            raise self._corrupt(f"an unreadable record at offset {origin.offset}: {error}") from None
        self._machine.replay(record, origin)

    def _corrupt(self, what: str) -> ApiError:
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"{self._name} has {what}")
