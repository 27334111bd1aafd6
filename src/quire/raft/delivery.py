"""Hands committed batches to the listener, in the order of the log, a limited amount in each turn of the event loop.

A node that starts with a long log, or a follower that was away, has much to replay. Between two turns it answers
requests, votes and fetches. Batches that this node wrote itself are kept decoded until they are committed; the others
are read from the log.
"""

from collections import deque
from collections.abc import Callable, Iterator

from quire.raft.errors import MetadataLogError
from quire.raft.log_store import CommittedBatch, LogStore
from quire.seams import Clock

TURN_BYTES = 64 * 1024


class Delivery:
    __slots__ = (
        "_clock",
        "_deliver",
        "_delivered",
        "_failed",
        "_from_log",
        "_scheduled",
        "_store",
        "_target",
        "_written",
        "offset",
    )

    def __init__(
        self,
        store: LogStore,
        clock: Clock,
        deliver: Callable[[list[CommittedBatch]], None],
        delivered: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """`deliver` is called with the batches of one turn, and `delivered` when nothing committed is left.

        `failed` is called if the log cannot be read or the listener does not support a record, in a later turn than
        that of `committed`; in that turn the exception is raised.
        """
        self._store = store
        self._clock = clock
        self._deliver = deliver
        self._delivered = delivered
        self._failed = failed
        self._written: deque[CommittedBatch] = deque()
        self._from_log: Iterator[CommittedBatch] | None = None
        self._target = 0
        self._scheduled = False
        self.offset = 0
        """Everything below is with the listener."""

    def restart_at(self, offset: int) -> None:
        """The listener has a snapshot up to `offset`."""
        self._written.clear()
        self._from_log = None
        self.offset = offset
        self._target = max(self._target, offset)

    def stop(self) -> None:
        self._target = self.offset

    def wrote(self, batch: CommittedBatch) -> None:
        self._written.append(batch)

    def forget_written(self) -> None:
        """This node no longer leads: what it wrote may be truncated."""
        self._written.clear()

    def committed(self, offset: int) -> None:
        """Everything below `offset` is committed."""
        self._target = max(self._target, offset)
        if not self._scheduled:
            self._take_turn()

    def _take_turn(self) -> None:
        batches = self._next_batches()
        if batches:
            self.offset = batches[-1].last_offset + 1
            self._deliver(batches)
        if self.offset < self._target:
            self._scheduled = True
            self._clock.call_soon(self._next_turn)
        else:
            self._delivered()

    def _next_turn(self) -> None:
        self._scheduled = False
        try:
            if self.offset < self._target:
                self._take_turn()
        except (OSError, MetadataLogError) as error:
            self._failed(error)

    def _next_batches(self) -> list[CommittedBatch]:
        batches: list[CommittedBatch] = []
        left, offset = TURN_BYTES, self.offset
        while offset < self._target and left > 0:
            batch = self._next(offset)
            batches.append(batch)
            left -= batch.size_bytes
            offset = batch.last_offset + 1
        return batches

    def _next(self, offset: int) -> CommittedBatch:
        if self._written and self._written[0].base_offset == offset:
            return self._written.popleft()
        if self._from_log is None:
            end = self._written[0].base_offset if self._written else self._target
            self._from_log = self._store.read(offset, min(end, self._target))
        batch = next(self._from_log, None)
        if batch is None:
            self._from_log = None
            return self._next(offset)
        return batch
