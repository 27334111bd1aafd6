"""Opening a log: from the files in a folder to segments, epochs and producers that agree with each other.

After a clean stop everything was synced, and only the end of the last segment is read. After a crash every byte from
the recovery point's segment on is read and checked. The log ends at the first torn batch beyond the recovery point: the
rest of that segment is cut off and later segments are removed, because what is left must be a prefix of what was
written. What was on disk is never removed, even if it is damaged now (see `recovery_scan`). Another crash during the
recovery does no harm: opening starts again from the same recovery point and finds the same or less. A log that must not
lose its end to damage in its middle is opened with `only_torn`: then only what a crash can leave is cut off.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Required, TypedDict, Unpack

from quire.protocol.records.batch import HEADER_BYTES, read_header
from quire.protocol.records.invalid import InvalidRecords
from quire.seams import Disk
from quire.storage import file_names
from quire.storage.indexes.index_file import CorruptIndexError, IndexCache
from quire.storage.leader_epochs import LeaderEpochs
from quire.storage.log_config import LogConfig
from quire.storage.producers.producer_replay import MarkedEnd, find_ended, replay_producers
from quire.storage.producers.producer_snapshot import ProducerSnapshots
from quire.storage.producers.producer_state import ProducerState
from quire.storage.recovery.epoch_recovery import EpochRecovery
from quire.storage.recovery.index_recovery import IndexRecovery
from quire.storage.recovery.left_overs import tidy
from quire.storage.recovery.recovery_scan import MAX_OFFSET, RecoveryScan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.damage import DamagedLogError, find_intact, is_hole
from quire.storage.segment import Segment
from quire.storage.segments import Segments

_log = logging.getLogger("quire.storage")


@dataclass(slots=True)
class OpenedLog:
    segments: Segments
    snapshots: ProducerSnapshots
    producers: ProducerState
    epochs: LeaderEpochs
    epochs_saved: bytes
    """The epochs in the file, which may have too few or too many."""
    start_offset: int
    end_offset: int
    recovery_point: int
    unsynced: list[str]
    """Files written while opening; they must be synced before the recovery point passes them."""
    roll_marks: list[str]
    """To be removed when these are synced."""
    uncommitted_markers: list[MarkedEnd]


class KnownOfLog(TypedDict, total=False):
    """The caller's knowledge of the log."""

    now_ms: Required[int]
    clean: Required[bool]
    """Whether it was closed and is unchanged since; otherwise it is scanned from `recovery_point` on."""
    recovery_point: int
    log_start_offset: int
    only_torn: bool
    """Only an unfinished end may be cut off; DamagedLogError if anything else is wrong.

    Such a log must sync each segment before it writes to the next (`sync_completed`).
    """
    foreign: bool
    """Apache Kafka may have compacted it; see `quire.storage.recovery.gap_mark`."""
    high_watermark: int
    """As far as its last owner knew. Without it nothing counts as uncommitted."""
    page_cache_intact: bool
    """The last process was killed at worst, so that what it wrote is there; only its last append may be torn."""
    was_compacted: bool
    """It has been compacted, whatever its topic's settings are now: offsets may be missing."""
    before_loss: Callable[[], None]
    """Called before anything is cut off but an append that was never finished: records may be lost."""


def open_log(disk: Disk, folder: str, config: LogConfig, cache: IndexCache, **known: Unpack[KnownOfLog]) -> OpenedLog:
    recovery_point, log_start_offset = known.get("recovery_point", 0), known.get("log_start_offset", 0)
    high_watermark = known.get("high_watermark")
    opener = _Opener(
        disk,
        folder,
        config,
        cache,
        known["now_ms"],
        recovery_point,
        written_before=(high_watermark or 0) if known.get("page_cache_intact", False) else 0,
        only_torn=known.get("only_torn", False),
        foreign=known.get("foreign", False),
        may_have_gaps=config.compact or known.get("was_compacted", False),
        before_loss=known.get("before_loss", lambda: None),
    )
    opener.load(log_start_offset)
    try:
        is_clean = known["clean"] and opener.read_end()
        if not is_clean:
            opener.recover()
        if opener.end_offset < recovery_point:
            opener.before_loss()
            _log.warning(
                "%s ends at %d, though everything before %d was on disk: a file of it was removed, cut or damaged",
                folder,
                opener.end_offset,
                recovery_point,
            )
        return opener.finish(log_start_offset, MAX_OFFSET if high_watermark is None else high_watermark, clean=is_clean)
    finally:
        opener.close_files()


def begin_log(
    disk: Disk, folder: str, config: LogConfig, cache: IndexCache, *, start_offset: int, now_ms: int
) -> OpenedLog:
    """A new log in a folder that has none."""
    segment = Segment.create(disk, folder, start_offset, config, cache, now_ms=now_ms)
    segment.close()
    epochs = LeaderEpochs()
    return OpenedLog(
        segments=Segments([segment]),
        snapshots=ProducerSnapshots(disk, folder, []),
        producers=ProducerState(),
        epochs=epochs,
        epochs_saved=epochs.to_bytes(),
        start_offset=start_offset,
        end_offset=start_offset,
        recovery_point=0,
        unsynced=[],
        roll_marks=[],
        uncommitted_markers=[],
    )


class _Opener:
    """One log that is being opened; the fields are what is known so far."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        config: LogConfig,
        cache: IndexCache,
        now_ms: int,
        recovery_point: int,
        *,
        written_before: int,
        only_torn: bool,
        foreign: bool,
        may_have_gaps: bool,
        before_loss: Callable[[], None],
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._config = config
        self._cache = cache
        self._now_ms = now_ms
        self._recovery_point = recovery_point
        self._written_before = written_before
        self._only_torn = only_torn
        self._foreign = foreign
        self._may_have_gaps = may_have_gaps
        self.before_loss = before_loss
        self._producers: ProducerState | None = None
        self._scanned_from = MAX_OFFSET
        """The files beside segments that begin before it are as they were found."""
        self.end_offset = 0

    def load(self, log_start_offset: int) -> None:
        """Finds the segments; reads no log."""
        names = tidy(self._disk, self._folder)
        numbered = [parsed for parsed in map(file_names.parse_offset_file, names) if parsed is not None]
        bases = [offset for offset, suffix in numbered if suffix == file_names.LOG]
        for offset, suffix in numbered:
            if suffix in file_names.INDEXES and offset not in bases:
                self._disk.remove(f"{self._folder}/{file_names.offset_file(offset, suffix)}")
        self._indexes = IndexRecovery(self._disk, self._folder, frozenset(names))
        self._epochs = EpochRecovery(self._disk, self._folder, frozenset(names))
        self._snapshots = ProducerSnapshots(
            self._disk, self._folder, [offset for offset, suffix in numbered if suffix == file_names.SNAPSHOT]
        )
        self._segments = Segments([self._segment(base) for base in bases] or [self._new_segment(log_start_offset)])
        # Before anything is checked: a deletion may have removed any part of it, and a hole there is no damage.
        self._remove(self._segments.drop_before(log_start_offset))

    def read_end(self) -> bool:
        """Opens a log that was closed; False if the last segment is not as closing leaves it."""
        self._indexes.rebuild_missing(self._segments, len(self._segments))
        try:
            self.end_offset = self._segments.active.load_tail()
        except (DamagedBatchError, CorruptIndexError) as error:
            _log.warning("%s was stopped cleanly but is damaged: %s", self._folder, error)
            return False
        self._check_last_offset()
        return True

    def _check_last_offset(self) -> None:
        """A clean stop notes the end of each log. If the last batch ends elsewhere, its offset was damaged since.

        Every other batch is compared with the one after it before it is served.
        """
        active, recovery_point = self._segments.active, self._recovery_point
        if self.end_offset == recovery_point or active.base_offset >= recovery_point or active.size == 0:
            return
        position, header, expected_offset = active.last_batch()
        offset = header.base_offset
        if offset < expected_offset or offset > expected_offset <= recovery_point < header.next_offset:
            reason = f"its offset is {offset}, though the log ended at {recovery_point}"
            active.refuse_last_batch(DamagedBatchError(active.path, position, reason))
            self._begin_segment(max(recovery_point, expected_offset))

    def recover(self) -> None:
        """Checks every byte from the recovery point's segment on."""
        segments, recovery_point = self._segments, self._recovery_point
        first = segments[segments.slot_of(recovery_point)]
        self._indexes.rebuild_missing(segments, segments.slot_of(recovery_point))
        on_disk = self._epochs.before_scan(segments, first)
        self._producers = replay_producers(segments, self._snapshots, segments[0].base_offset, first.base_offset)
        # Later ones were never synced. The scan writes them again.
        self._snapshots.remove_after(first.base_offset)
        self.end_offset = first.base_offset
        scan = RecoveryScan(
            self._config,
            self._epochs.epochs,
            self._producers,
            recovery_point,
            written_before=self._written_before,
            only_torn=self._only_torn,
            may_have_gaps=self._may_have_gaps,
            epochs_on_disk=on_disk,
        )
        to_scan = list(segments)[segments.slot_of(recovery_point) :]
        self._scanned_from = first.base_offset
        for segment, following in zip(to_scan, [*to_scan[1:], None], strict=True):
            if self._lacks_something_before(segment):
                reason = f"it does not begin at offset {self.end_offset}, where the log ends"
                if self._only_torn and self._any_intact_from(segment.base_offset):
                    raise DamagedLogError(segment.path, 0, self.end_offset, reason)
                self.before_loss()
                self._end_log_before(segment, reason)
                break
            size = segment.size
            self.end_offset, damage = scan.run(segment, max(self.end_offset, segment.base_offset), following)
            if damage is not None and following is not None and self.end_offset == following.base_offset:
                self._cut_remains(segment, size - segment.size, damage)
            elif damage is not None:
                if self._only_torn:
                    self._check_that_it_is_torn(segment, size, damage)
                if following is not None or not self._is_unfinished(segment, size, damage):
                    self.before_loss()
                self._cut(segment, size - segment.size, damage)
                break
            if following is not None:
                self._save_producers(following.base_offset)
        self._indexes.save(segments, first)
        if scan.damaged_at_end and self.end_offset < recovery_point:
            self._begin_segment(recovery_point)

    def finish(self, log_start_offset: int, high_watermark: int, *, clean: bool) -> OpenedLog:
        segments, recovery_point = self._segments, self._recovery_point
        if self.end_offset < log_start_offset:
            self.before_loss()
            _log.warning(
                "%s ends at %d, before its start %d: it is empty", self._folder, self.end_offset, log_start_offset
            )
            self._remove(segments.replace_all(self._new_segment(log_start_offset)))
            self._producers = ProducerState()
            self.end_offset = log_start_offset
        if self._may_have_gaps and self.end_offset < recovery_point:
            # Compaction may have removed the last records, and a crash those after them: no offset is given twice.
            self._begin_segment(recovery_point)
        start_offset = max(log_start_offset, segments[0].base_offset)
        self._remove(segments.drop_before(start_offset))
        self._epochs.find_before(segments, self.end_offset)
        self._epochs.epochs.truncate_from_end(self.end_offset)
        self._epochs.epochs.truncate_from_start(start_offset)
        self._snapshots.remove_after(self.end_offset)
        self._indexes.check_transaction_indexes(
            segments, self._snapshots, scanned_from=self._scanned_from, end_offset=self.end_offset
        )
        if self._producers is None:
            self._producers = self._producers_after_clean_stop()
        self._snapshots.remove_strays(segment.base_offset for segment in segments)
        return OpenedLog(
            segments=segments,
            snapshots=self._snapshots,
            producers=self._producers,
            epochs=self._epochs.epochs,
            epochs_saved=self._epochs.saved,
            start_offset=start_offset,
            end_offset=self.end_offset,
            recovery_point=self.end_offset if clean else min(recovery_point, self.end_offset),
            unsynced=self._indexes.unsynced,
            roll_marks=self._indexes.roll_marks,
            uncommitted_markers=find_ended(
                segments, self._snapshots, max(high_watermark, start_offset), self.end_offset
            ),
        )

    def close_files(self) -> None:
        """A log opens its files when it first needs them."""
        for segment in self._segments:
            segment.close()

    def _lacks_something_before(self, segment: Segment) -> bool:
        """Whether what should come before the segment is lost; see `quire.storage.recovery.gap_mark`."""
        compacted_by_others = self._may_have_gaps and self._foreign
        certain_before = max(self._recovery_point, self._written_before)
        return self.end_offset < segment.base_offset > certain_before and not compacted_by_others

    def _check_that_it_is_torn(self, segment: Segment, size: int, damage: DamagedBatchError) -> None:
        following = find_intact(segment.file, damage.position, size, self.end_offset)
        hole = following is not None and is_hole(segment.file, damage.position, following, self.end_offset)
        if (following is not None and not hole) or self._any_intact_from(segment.base_offset + 1):
            raise DamagedLogError(segment.path, damage.position, self.end_offset, damage.reason)

    def _is_unfinished(self, segment: Segment, size: int, damage: DamagedBatchError) -> bool:
        """Whether the file ends within the batch, as after a process was killed while it appended."""
        left = size - damage.position
        if left < HEADER_BYTES:
            return True
        with suppress(InvalidRecords):
            if read_header(segment.file.pread(HEADER_BYTES, damage.position)).size > left:
                return find_intact(segment.file, damage.position, size, self.end_offset) is None
        return False

    def _any_intact_from(self, base_offset: int) -> bool:
        """Whether later segments hold anything. They were created when all before them was durable."""
        later = [segment for segment in self._segments if segment.base_offset >= base_offset]
        return any(find_intact(each.file, 0, each.size, self.end_offset) is not None for each in later)

    def _cut(self, segment: Segment, size: int, damage: DamagedBatchError) -> None:
        segment.cut_tail()
        # After a clean stop nothing is scanned, so a power loss must not be able to bring the damage back.
        segment.file.sync()
        later = self._segments.drop_from(segment.base_offset + 1)
        _log.warning(
            "cut %d bytes off %s at position %d, offset %d, and %d bytes in %d segments after it: %s",
            size,
            segment.path,
            segment.size,
            self.end_offset,
            sum(dropped.size for dropped in later),
            len(later),
            damage.reason,
        )
        self._remove_durably(later)

    def _cut_remains(self, segment: Segment, size: int, damage: DamagedBatchError) -> None:
        """Nothing is missing before the next segment: what is after the last batch is from a write that failed.

        It was cut off then, because the disk was full for example, and a power loss has brought it back.
        """
        segment.cut_tail()
        segment.file.sync()
        _log.warning(
            "cut %d bytes off %s at position %d, which are of a write that failed: %s",
            size,
            segment.path,
            segment.size,
            damage.reason,
        )

    def _end_log_before(self, segment: Segment, reason: str) -> None:
        later = self._segments.drop_from(segment.base_offset)
        _log.warning(
            "removed %d bytes in %d segments from %s on: %s",
            sum(dropped.size for dropped in later),
            len(later),
            segment.path,
            reason,
        )
        self._remove_durably(later)

    def _producers_after_clean_stop(self) -> ProducerState:
        # A clean stop writes a snapshot if there are producers: without one there are none, and nothing to scan.
        if not self._snapshots.offsets:
            return ProducerState()
        return replay_producers(self._segments, self._snapshots, self._segments[0].base_offset, self.end_offset)

    def _save_producers(self, offset: int) -> None:
        """The state before the segment at `offset`, as it was when that was created."""
        assert self._producers is not None
        if len(self._producers):
            self._indexes.unsynced.append(self._snapshots.write(offset, self._producers))

    def _remove_durably(self, segments: list[Segment]) -> None:
        if segments:
            self._remove(segments)
            self._disk.sync_dir(self._folder)

    def _remove(self, segments: list[Segment]) -> None:
        for segment in segments:
            for path in segment.retire():
                self._disk.remove(path)
            segment.close()

    def _segment(self, base_offset: int) -> Segment:
        size = self._disk.file_size(f"{self._folder}/{file_names.offset_file(base_offset, file_names.LOG)}")
        segment = Segment(
            self._disk, self._folder, base_offset, self._config, self._cache, now_ms=self._now_ms, size=size
        )
        self._indexes.found(segment)
        return segment

    def _begin_segment(self, base_offset: int) -> None:
        """The log continues, and for now ends, at this offset."""
        self.before_loss()
        self._indexes.mark_roll(base_offset)
        self._indexes.save_completed(self._segments.active)
        self._segments.add(self._new_segment(base_offset))
        self.end_offset = base_offset

    def _new_segment(self, base_offset: int) -> Segment:
        return Segment.create(self._disk, self._folder, base_offset, self._config, self._cache, now_ms=self._now_ms)
