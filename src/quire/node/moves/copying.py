"""The copying of one replica into the future log of its new directory: the first half of a move (`disk_move`).

    copy        a job reads a portion of the original, and the event loop appends it to the future log, in pieces
    truncated   before the next piece, the future log is truncated to what both logs have
    deleted     when the start of the original has moved, that of the future log follows, in its checkpoint first

Compaction and repairs leave the original alone meanwhile (`Cleaner.lend`): with segments from before and others from
after a compaction, the copy would lack tombstones that hide values which it has.
"""

import errno
import logging
from functools import partial
from typing import TYPE_CHECKING

from quire.node.moves.common_end import kept_end
from quire.node.moves.move_state import MoveState
from quire.node.moves.portion import Piece, Portion, read_portion
from quire.protocol.errors import ApiError
from quire.replication.partition import Partition
from quire.seams import FileSlice
from quire.storage import Log, file_names
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.producers.producer_state import ProducerState
from quire.storage.repair.targets import may_have_gaps
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.range_check import NotCheckedError

if TYPE_CHECKING:
    from quire.node.moves.disk_moves import DiskMoves

log = logging.getLogger("quire.disks")

PORTION_BYTES = 512 << 10
"""How much one job reads. Together with the page cache, that is all that a move needs of memory."""

AT_ONCE_BYTES = 64 << 10
"""The end of the log is copied without a job, so that nothing can be written meanwhile."""

POLL_MS = 50.0
"""While the controller writes the new directory, what is written to the original is copied this often."""

FIRST_PAUSE_MS = 200.0
LONGEST_PAUSE_MS = 60_000.0
"""Before another attempt after an error: a full disk, a damaged batch, a log that is being compacted."""


class Copying:
    """Copies until the future log has everything that the original had a moment ago; `_caught_up` decides what is next.

    The state is that of the whole move. This half acts in COPYING and ANNOUNCED, and once more in FOLLOWING.
    """

    __slots__ = (
        "_beginnings",
        "_busy",
        "_folder",
        "_lent",
        "_moves",
        "_pause_ms",
        "_truncations",
        "is_dropped",
        "key",
        "original",
        "partition",
        "source",
        "state",
        "target",
    )

    def __init__(self, moves: "DiskMoves", partition: Partition, source: LogDirectory, target: LogDirectory) -> None:
        """The target has the future log already."""
        self._moves = moves
        self.partition = partition
        self.key = (partition.topic, partition.index)
        self.source = source
        self.target = target
        self.state = MoveState.WAITING
        self.original = partition.log
        self._folder = partition.log.path
        self._lent = False
        self._busy = False
        """Whether a job, a timer or a checkpoint calls `_step` later."""
        self.is_dropped = False
        """The move was cancelled while a job renamed the folder of the copy."""
        self._beginnings = 0
        """How often the copy was begun; what was read before does not belong there any more."""
        self._truncations = -1
        """Those of the original that the copy has followed."""
        self._pause_ms = FIRST_PAUSE_MS

    @property
    def copy(self) -> Log:
        return self.target.futures[self.key]

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind."""
        return max(self.original.end_offset - self.copy.end_offset, 0)

    def try_to_lend(self) -> bool:
        """Keeps the cleaner and repairs away from the original."""
        self._lent = self._lent or self._moves.cleaner.lend(self.original)
        return self._lent

    def make_way_for_repair(self) -> None:
        """A repair needs the log, while the copy is far from complete. The next step waits for its end."""
        if not self._lent or self.state > MoveState.ANNOUNCED:
            return
        if may_have_gaps(self.original, self.source.cleaned_offsets.get(self.key)):
            # The repair replaces more than the damaged segment, by segments that are compacted in another way.
            try:
                self._start_over(self.original.start_offset)
            except ApiError:
                return  # The target has failed, or is full.
        self._moves.cleaner.take_back(self.original, self._folder)
        self._lent = False

    # --- Steps

    def _again(self, delay_ms: float = 0.0) -> None:
        self._busy = True
        clock = self._moves.clock
        if delay_ms > 0:
            clock.call_later(delay_ms, self._resume)
        else:
            clock.call_soon(self._resume)

    def _resume(self) -> None:
        self._busy = False
        self._step()

    def _pause(self) -> None:
        """Something is wrong that may pass."""
        pause_ms, self._pause_ms = self._pause_ms, min(2 * self._pause_ms, LONGEST_PAUSE_MS)
        self._again(pause_ms)

    def _step(self) -> None:
        """One step, which leads to the next one."""
        if self.state not in (MoveState.COPYING, MoveState.ANNOUNCED, MoveState.FOLLOWING):
            return
        if not self._moves.may_work(self):
            return
        if not self.try_to_lend():
            self._pause()
            return
        try:
            if self._follow_original():
                self._read()
        except NotCheckedError as error:
            self._busy = True
            self._moves.partitions.check(self.partition, error.check, self._resume)
        except DamagedBatchError as damage:
            self._damaged(damage)
        except OSError as error:
            self.partition.storage_error(error)
            self._pause()
        except ApiError as error:
            self._not_copied(error)

    def _not_copied(self, error: ApiError) -> None:
        if self.target.failure is None and self._moves.may_work(self):
            log.warning("move paused partition=%s to=%s: %s", self.partition, self.target.path, error.message)
            self._pause()

    def _damaged(self, damage: DamagedBatchError) -> None:
        """Another replica may have the batch."""
        error = self.partition.damage_error(damage)
        self.make_way_for_repair()
        self._not_copied(error)

    def _follow_original(self) -> bool:
        """Makes the copy a prefix of the original that starts where that does; False if the next step has to wait."""
        original, copy = self.original, self.copy
        copy.config = original.config
        if self._truncations != original.truncations:
            self._reconcile()
            self._truncations = original.truncations
        if copy.start_offset >= original.start_offset:
            return True
        if copy.end_offset < original.start_offset:
            self._start_over(original.start_offset)
            return True
        if copy.end_offset > copy.start_offset:
            self._busy = True
            self.target.move_start(self.key, original.start_offset, self._resume)
            return False
        return True

    def _reconcile(self) -> None:
        """The original was truncated, or this process has not compared the logs yet."""
        original, copy = self.original, self.copy
        common = kept_end(copy, original)
        if common is None:
            self._start_over(original.start_offset)
        elif common < copy.end_offset:
            try:
                self.target.truncate([(copy, common)])
            except DamagedBatchError:
                self._start_over(original.start_offset)

    def _start_over(self, offset: int) -> None:
        self._beginnings += 1
        self.target.start_over(self.copy, offset)

    def _read(self) -> None:
        original, copy = self.original, self.copy
        offset = max(copy.end_offset, original.start_offset)
        part = None
        if offset < original.end_offset:
            part = original.read(offset, self._moves.portion_bytes(), in_job=True)
        if part is None:
            if copy.end_offset < original.end_offset:
                # The last batches are compacted away, and nothing was written since.
                copy.skip_to(original.end_offset, self._moves.clock.now_ms())
            self._caught_up()
            return
        if self.state is MoveState.FOLLOWING and self._is_end(part):
            for piece in read_portion(part, offset, copy.config.segment_bytes):
                self._append(piece, part)
            self._resume()
            return
        self._busy = True
        begun_ms, version = self._moves.clock.monotonic_ms(), self._version
        loader = original.first_producers() if copy.start_offset == copy.end_offset else None

        def read() -> Portion:
            producers = None if loader is None else loader.run()
            return Portion(read_portion(part, offset, copy.config.segment_bytes), producers)

        self._moves.jobs.submit(
            read, lambda portion: self._append_in_turns(part, portion, version, begun_ms), self._not_read
        )

    def _is_end(self, part: FileSlice) -> bool:
        end = self.original.end
        return (
            part.size <= AT_ONCE_BYTES
            and part.file is self.original.segments[-1].file
            and (part.position + part.size == end.position)
        )

    def _not_read(self, error: Exception) -> None:
        if isinstance(error, OSError) and error.errno != errno.EBADF and self._moves.may_work(self):
            self.partition.storage_error(error)
        elif isinstance(error, ApiError):
            log.warning("move paused partition=%s to=%s: %s", self.partition, self.target.path, error.message)
        elif not isinstance(error, OSError):
            log.error("copying %s failed unexpectedly", self.partition, exc_info=error)
        # EBADF: its segment was deleted.
        self._pause()

    @property
    def _version(self) -> tuple[int, int]:
        """If it changes, what was read may not belong to the end of the copy."""
        return self.original.truncations, self._beginnings

    def _append_in_turns(self, part: FileSlice, portion: Portion, version: tuple[int, int], begun_ms: float) -> None:
        if not self._moves.may_work(self) or self._version != version or not self._lent:
            self._resume()
            return
        try:
            for piece in portion.pieces[:1]:
                self._append(piece, part, portion.producers)
        except ApiError as error:
            self._busy = False
            self._not_copied(error)
            return
        if len(portion.pieces) > 1:
            rest = Portion(portion.pieces[1:])
            self._moves.clock.call_soon(partial(self._append_in_turns, part, rest, self._version, begun_ms))
            return
        if not portion.pieces:
            # Less than a batch: the segment was cut short by something that the next step notices.
            self._pause()
            return
        self._pause_ms = FIRST_PAUSE_MS
        self._busy = False
        delay_ms = self._moves.throttled_ms(part.size, begun_ms) if self.state is not MoveState.FOLLOWING else 0.0
        if delay_ms > 0 and self.copy.end_offset < self.original.end_offset:
            self._again(delay_ms)
        else:
            self._step()

    def _append(self, piece: Piece, part: FileSlice, producers: ProducerState | None = None) -> None:
        """ApiError if the disk of the target takes nothing. An empty copy begins with `producers`."""
        copy, first = self.copy, piece.headers[0].base_offset
        if first < copy.end_offset and copy.start_offset == copy.end_offset:
            # The original starts in the middle of this batch.
            self._start_over(first)
        now_ms = self._moves.clock.now_ms()
        try:
            if producers is not None and copy.start_offset == copy.end_offset:
                copy.begin_with(producers)
            if self._is_next_segment(part):
                copy.roll(now_ms)
            copy.append_as_follower(piece.records, piece.headers, now_ms)
        except OSError as error:
            raise self._moves.target_failed(self, error) from error

    def _is_next_segment(self, part: FileSlice) -> bool:
        """Whether the batches are of a later segment than what the copy has at its end: it has the same segments."""
        parsed = file_names.parse_offset_file(part.file.path.rpartition("/")[2])
        return parsed is not None and self.copy.end.segment_base < parsed[0] <= self.copy.end_offset

    def _caught_up(self) -> None:
        """The copy has everything that was there when this step began."""
        raise NotImplementedError
