"""The move of one replica to another data directory of this broker. `move_state` has its states.

copied      as `copying` says, while the original takes the writes
announced   when the copy has everything, the controller is told; the replacement waits until the image says so
replaced    when the copy, under its final name, has everything again, in one turn of the event loop
removed     when the copy is on disk and decides, the original gets the name of a deleted log
"""

import errno
import logging

from quire.node.moves.copying import FIRST_PAUSE_MS, POLL_MS, Copying
from quire.node.moves.move_state import MoveState
from quire.storage import Log
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.directory.move_mark import MoveMark, MoveRole
from quire.storage.errors import is_shortage

log = logging.getLogger("quire.disks")


class DiskMove(Copying):
    __slots__ = ()

    @property
    def is_active(self) -> bool:
        """Whether the original still takes the writes."""
        return self.state < MoveState.DECIDING

    # --- From outside

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
