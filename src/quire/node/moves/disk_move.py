"""The move of one replica to another data directory of this broker. `move_state` has its states.

    copy        a job reads a portion of the original, and the event loop appends it to the future log, in pieces
    truncated   before the next piece, the future log is truncated to what both logs have
    deleted     when the start of the original has moved, that of the future log follows, in its checkpoint first
    announced   when the copy has everything, the controller is told; the replacement waits until the image says so
    replaced    when the copy, under its final name, has everything again, in one turn of the event loop

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
from quire.storage.directory.move_mark import MoveMark, MoveRole
from quire.storage.errors import is_shortage
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


class DiskMove:
    __slots__ = (
        "_beginnings",
        "_busy",
        "_folder",
        "_lent",
        "_moves",
        "_pause_ms",
        "_seen_end",
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
        self._seen_end = 0
        """The end of the original when it was read last."""
        self._pause_ms = FIRST_PAUSE_MS

    @property
    def copy(self) -> Log:
        return self.target.futures[self.key]

    @property
    def is_active(self) -> bool:
        """Whether the original still takes the writes."""
        return self.state < MoveState.DECIDING

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind."""
        return max(self.original.end_offset - self.copy.end_offset, 0)

    # --- From outside

    def try_to_lend(self) -> bool:
        """Keeps the cleaner and repairs away from the original."""
        self._lent = self._lent or self._moves.cleaner.lend(self.original)
        return self._lent

    def begin(self) -> None:
        if self.state is MoveState.WAITING:
            self.state = MoveState.COPYING
            self._step()

    def committed(self) -> None:
        """The image has the new directory."""
        if self.state is MoveState.ANNOUNCED and not self._busy:
            self._step()

    def partition_removed(self) -> None:
        """The topic is deleted, or this broker has no replica of the partition any more."""
        if self.state is MoveState.DECIDING:
            self._leave()
        else:
            self.cancel()

    def directory_failed(self) -> None:
        """Of the source or the target. What a start finds in the other one is in `move_state`."""
        if self.is_active:
            if self.target.failure is not None and self.key in self.target.futures:
                self.target.futures.pop(self.key).close_files()
            self.end()
        elif self.state is MoveState.DECIDING and self.target.failure is not None:
            self.original.close_files()
            self.end()

    def cancel(self) -> None:
        """Before DECIDING: the original stays."""
        if self.state is MoveState.PLACING:
            self.is_dropped = True
        elif self.is_active:
            self._drop()

    def end(self) -> None:
        """Nothing more is done: the partition is not here any more, or a directory has failed."""
        if self.state is not MoveState.ENDED:
            self.state = MoveState.ENDED
            if self._lent:
                self._moves.cleaner.take_back(self.original, self._folder)
                self._lent = False
            self._moves.ended(self)

    def _drop(self) -> None:
        was_placed = self.state in (MoveState.PLACING, MoveState.FOLLOWING)
        if self.key in self.target.futures:
            self.target.drop_future(self.key)
        if was_placed:
            self.source.unmark_log(self.key)
        self.end()

    # --- Copying

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
        self._seen_end = original.end_offset
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

    # --- Replacing

    def _caught_up(self) -> None:
        """The copy has everything that was there when this step began."""
        if self.state is MoveState.COPYING:
            self.state = MoveState.ANNOUNCED
            self._moves.announce(self)
        if self.state is MoveState.ANNOUNCED:
            if self._moves.is_committed(self):
                self._ready()
            else:
                self._again(POLL_MS)
        elif self.state is MoveState.FOLLOWING:
            self._replace()

    def _ready(self) -> None:
        self.state = MoveState.READYING
        cleaned_offset = self.source.cleaned_offsets.get(self.key)
        if cleaned_offset is not None:
            self.target.cleaned_offsets.is_clean_before(self.key, min(cleaned_offset, self.copy.end_offset))
        copy = self.copy

        def ready() -> None:
            if self.state is MoveState.READYING and self.target.futures.get(self.key) is copy:
                self._mark_original()

        self.target.ready_future(
            self.key, lambda: self.target.move_start(self.key, copy.start_offset, ready), self._back
        )

    def _back(self) -> None:
        """The disk of the target has no room for now."""
        if self.state in (MoveState.READYING, MoveState.PLACING):
            self.state = MoveState.ANNOUNCED
            self._pause()

    def _mark_original(self) -> None:
        self.state = MoveState.PLACING

        def failed(error: Exception) -> None:
            self._moves.source_failed(self, error)
            if self.is_dropped:
                self._drop()
            else:
                self._back()

        mark = MoveMark(MoveRole.ORIGINAL, _id_of(self.target))
        self.source.mark_log(self.key, mark, self._place, failed)

    def _place(self) -> None:
        if self._moves.is_stopped:
            return  # The next start goes on.
        if self.is_dropped or not self._moves.may_work(self):
            self._end_placing()
            return
        self.target.place_future(
            self.key, _id_of(self.source), self.partition.high_watermark, self._placed, self._not_placed
        )

    def _placed(self, _copy: Log) -> None:
        if self.is_dropped or not self._moves.may_work(self):
            self._end_placing()
            return
        self.state = MoveState.FOLLOWING
        self._resume()

    def _not_placed(self, error: Exception) -> None:
        """The folder may have either name."""
        if isinstance(error, OSError) and is_shortage(error) and not self.is_dropped and self._moves.may_work(self):
            self._moves.target_failed(self, error)
            self._moves.clock.call_later(FIRST_PAUSE_MS, self._place)
            return
        if not self.is_dropped and self._moves.may_work(self):
            failure = error if isinstance(error, OSError) else OSError(errno.EIO, f"a log cannot be opened ({error})")
            self._moves.target_failed(self, failure)
        self._end_placing()

    def _end_placing(self) -> None:
        if self.state is MoveState.PLACING:
            self._drop()

    def _replace(self) -> None:
        original, copy = self.original, self.copy
        if copy.end_offset != original.end_offset or copy.start_offset != original.start_offset:
            self._resume()
            return
        try:
            copy.take_over(original)
        except OSError as error:
            self._not_copied(self._moves.target_failed(self, error))
            return
        self.state = MoveState.DECIDING
        self._moves.has_moved(self, copy)
        log.info("replica moved partition=%s from=%s to=%s", self.partition, self.source.path, self.target.path)
        self._flush()

    def _flush(self) -> None:
        if self._moves.is_stopped or self.state is not MoveState.DECIDING:
            return
        self.target.flush(self.partition.log, self._flushed, self._flush_later)

    def _flush_later(self) -> None:
        if self.target.failure is None:
            self._moves.clock.call_later(FIRST_PAUSE_MS, self._flush)

    def _flushed(self) -> None:
        if self.state is not MoveState.DECIDING or self.key not in self.target.logs:
            self._leave()
            return
        mark = MoveMark(MoveRole.DECIDES, _id_of(self.source))
        self.target.mark_log(self.key, mark, self._leave, self._not_marked)

    def _not_marked(self, error: Exception) -> None:
        if self.state is MoveState.DECIDING:
            self._moves.target_failed(self, error)
            self._flush_later()

    def _leave(self) -> None:
        if self.state is MoveState.DECIDING and self.source.failure is not None:
            self.original.close_files()
            self.end()
        elif self.state is MoveState.DECIDING:
            self.state = MoveState.LEAVING
            self.source.remove_left(self.key, self.original, self._left, lambda _: self.end())

    def _left(self) -> None:
        self.target.unmark_log(self.key)
        self.end()


def _id_of(directory: LogDirectory) -> bytes:
    assert directory.meta is not None, f"{directory} is in use"
    return directory.meta.directory_id
