"""Opening a log: from the files in a folder to segments, epochs and producers that agree with each other.

After a clean stop everything was synced, and only the end of the last segment is read. After a crash every byte from
the recovery point's segment on is read and checked. At the first batch beyond the recovery point that is torn the log
ends: the rest of that segment is cut off and later segments go, because a log without its middle is no prefix of what
was written. What was on disk is never touched, not even if it is damaged now (see `recovery_scan`). Another crash
meanwhile does no harm: opening begins again from the same recovery point, and finds the same or less. A log that must
not lose its end to damage in its middle is opened with `only_torn`: then nothing is cut but what a crash can have left.
"""

import logging
from dataclasses import dataclass
from typing import Required, TypedDict, Unpack

from quire.seams import Disk
from quire.storage import batch_scan, file_names, leader_epochs
from quire.storage.batch_scan import DamagedBatchError
from quire.storage.checkpoints import CheckpointError
from quire.storage.damage import DamagedLogError, find_intact, is_hole
from quire.storage.index_file import CorruptIndexError, IndexCache
from quire.storage.leader_epochs import LeaderEpochs, read_epochs
from quire.storage.left_overs import tidy
from quire.storage.log_config import LogConfig
from quire.storage.producer_replay import rebuild_transaction_index, replay_producers
from quire.storage.producer_snapshot import ProducerSnapshots
from quire.storage.producer_state import ProducerState
from quire.storage.recovery_scan import MAX_OFFSET, RecoveryScan
from quire.storage.roll_mark import is_mark, make_mark, marked_offsets
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
    """What the epochs' file says, which may be less or more than what is true."""
    start_offset: int
    end_offset: int
    recovery_point: int
    unsynced: list[str]
    """Files written while opening; they must be synced before the recovery point passes them."""
    roll_marks: list[str]
    """To be removed when these are synced."""


class KnownOfLog(TypedDict, total=False):
    """What whoever opens a log knows of it."""

    now_ms: Required[int]
    clean: Required[bool]
    """Whether it was closed, and nothing touched it since; otherwise it is scanned from `recovery_point` on."""
    recovery_point: int
    log_start_offset: int
    only_torn: bool
    """Only an unfinished end may be cut off: DamagedLogError if there is more to it.

    Such a log has to see to it that a segment is durable before anything is in the next (`sync_completed`).
    """
    foreign: bool
    """Another than Quire may have compacted it; see `quire.storage.gap_mark`."""
    was_compacted: bool
    """It has been compacted, whatever its topic's settings are now: offsets may be missing in it."""


def open_log(disk: Disk, folder: str, config: LogConfig, cache: IndexCache, **known: Unpack[KnownOfLog]) -> OpenedLog:
    recovery_point, log_start_offset = known.get("recovery_point", 0), known.get("log_start_offset", 0)
    opener = _Opener(
        disk,
        folder,
        config,
        cache,
        known["now_ms"],
        recovery_point,
        only_torn=known.get("only_torn", False),
        foreign=known.get("foreign", False),
        may_have_gaps=config.compact or known.get("was_compacted", False),
    )
    opener.load(log_start_offset)
    try:
        is_clean = known["clean"] and opener.read_end()
        if not is_clean:
            opener.recover()
        if opener.end_offset < recovery_point:
            _log.warning(
                "%s ends at %d, though everything before %d was on disk: a file of it was removed, cut or damaged",
                folder,
                opener.end_offset,
                recovery_point,
            )
        return opener.finish(log_start_offset, clean=is_clean)
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
    )


class _Opener:
    """One log being opened; the fields are what is known so far."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        config: LogConfig,
        cache: IndexCache,
        now_ms: int,
        recovery_point: int,
        *,
        only_torn: bool,
        foreign: bool,
        may_have_gaps: bool,
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._config = config
        self._cache = cache
        self._now_ms = now_ms
        self._recovery_point = recovery_point
        self._only_torn = only_torn
        self._foreign = foreign
        self._may_have_gaps = may_have_gaps
        self._unsynced: list[str] = []
        self._epochs = LeaderEpochs()
        self._epochs_known = False
        self._epochs_saved = self._epochs.to_bytes()
        self._producers: ProducerState | None = None
        self._scanned_from = MAX_OFFSET
        """Of segments that begin before it, whatever is beside their logs is as it was found."""
        self.end_offset = 0

    def load(self, log_start_offset: int) -> None:
        """Finds the segments; reads no log."""
        names = tidy(self._disk, self._folder)
        numbered = [parsed for parsed in map(file_names.parse_offset_file, names) if parsed is not None]
        bases = [offset for offset, suffix in numbered if suffix == file_names.LOG]
        for offset, suffix in numbered:
            if suffix in file_names.INDEXES and offset not in bases:
                self._disk.remove(f"{self._folder}/{file_names.offset_file(offset, suffix)}")
        self._names = frozenset(names)
        self._roll_marks = [f"{self._folder}/{name}" for name in names if is_mark(name)]
        self._snapshots = ProducerSnapshots(
            self._disk, self._folder, [offset for offset, suffix in numbered if suffix == file_names.SNAPSHOT]
        )
        self._segments = Segments([self._segment(base) for base in bases] or [self._new_segment(log_start_offset)])
        # Before anything is checked: of what was being deleted any part may be left, and a hole there is no damage.
        self._remove(self._segments.drop_before(log_start_offset))
        if leader_epochs.FILE_NAME not in names:
            return
        try:
            self._epochs = read_epochs(self._disk, self._folder)
            self._epochs_known = bool(self._epochs.entries)
            self._epochs_saved = self._epochs.to_bytes()
        except CheckpointError as error:
            _log.warning("finding the leader epochs in the log itself: %s", error)

    def read_end(self) -> bool:
        """Opens what was stopped cleanly; False when the last segment is not as a clean stop leaves it."""
        self._rebuild_missing_indexes(len(self._segments))
        try:
            self.end_offset = self._segments.active.load_tail()
        except (DamagedBatchError, CorruptIndexError) as error:
            _log.warning("%s was stopped cleanly but is damaged: %s", self._folder, error)
            return False
        self._check_last_offset()
        return True

    def _rebuild_missing_indexes(self, count: int) -> None:
        """Of so many segments, which are not scanned. At the first look-up everybody would have to wait for it.

        The recovery point may have passed them, so a power loss has to find that they are new (see `roll_mark`).
        """
        segments = self._segments
        for slot in range(count):
            if segments[slot].size and self._lacks_an_index(segments[slot]):
                if segments[slot] is not segments.active:
                    self._roll_marks.append(make_mark(self._disk, self._folder, segments[slot + 1].base_offset))
                self._rebuild_indexes(segments[slot], CorruptIndexError("an index is missing"))

    def _rebuild_indexes(self, segment: Segment, reason: CorruptIndexError) -> None:
        segment.rebuild_indexes(reason)
        self._unsynced += [segment.offset_index.path, segment.time_index.path]

    def _check_last_offset(self) -> None:
        """A clean stop notes where each log ends. If the last batch is not there, its offset has been damaged since.

        Every other batch has one behind it, and is held against that before it is served.
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
        self._rebuild_missing_indexes(segments.slot_of(recovery_point))
        on_disk = LeaderEpochs(self._epochs.entries)
        self._learn_epochs_before(first.base_offset)
        if self._is_below_known_epochs(first):
            # Either the file or this batch is wrong. The log before it knows, and nothing is cut for the file's sake.
            _log.warning("finding the leader epochs of %s in the log itself: its file contradicts it", self._folder)
            self._epochs, self._epochs_known, on_disk = LeaderEpochs(), False, LeaderEpochs()
            self._learn_epochs_before(first.base_offset)
        self._producers = replay_producers(segments, self._snapshots, segments[0].base_offset, first.base_offset)
        # Later ones were never synced. The scan makes them anew.
        self._snapshots.remove_after(first.base_offset)
        self.end_offset = first.base_offset
        scan = RecoveryScan(
            self._config,
            self._epochs,
            self._producers,
            recovery_point,
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
                self._end_log_before(segment, reason)
                break
            size = segment.size
            self.end_offset, damage = scan.run(segment, max(self.end_offset, segment.base_offset), following)
            if damage is not None and following is not None and self.end_offset == following.base_offset:
                self._cut_remains(segment, size - segment.size, damage)
            elif damage is not None:
                if self._only_torn:
                    self._check_that_it_is_torn(segment, size, damage)
                self._cut(segment, size - segment.size, damage)
                break
            if following is not None:
                self._save_producers(following.base_offset)
        self._save_indexes(first)
        if scan.damaged_at_end and self.end_offset < recovery_point:
            self._begin_segment(recovery_point)

    def finish(self, log_start_offset: int, *, clean: bool) -> OpenedLog:
        segments, recovery_point = self._segments, self._recovery_point
        if self.end_offset < log_start_offset:
            _log.warning(
                "%s ends at %d, before its start %d: it is empty", self._folder, self.end_offset, log_start_offset
            )
            self._remove(segments.replace_all(self._new_segment(log_start_offset)))
            self._producers = ProducerState()
            self.end_offset = log_start_offset
        if self._may_have_gaps and self.end_offset < recovery_point:
            # Compaction may have taken what was last, and a crash what came then: no offset is given twice.
            self._begin_segment(recovery_point)
        start_offset = max(log_start_offset, segments[0].base_offset)
        self._remove(segments.drop_before(start_offset))
        self._learn_epochs_before(self.end_offset)
        self._epochs.truncate_from_end(self.end_offset)
        self._epochs.truncate_from_start(start_offset)
        self._snapshots.remove_after(self.end_offset)
        self._check_transaction_indexes()
        if self._producers is None:
            self._producers = self._producers_after_clean_stop()
        self._snapshots.remove_strays(segment.base_offset for segment in segments)
        return OpenedLog(
            segments=segments,
            snapshots=self._snapshots,
            producers=self._producers,
            epochs=self._epochs,
            epochs_saved=self._epochs_saved,
            start_offset=start_offset,
            end_offset=self.end_offset,
            recovery_point=self.end_offset if clean else min(recovery_point, self.end_offset),
            unsynced=self._unsynced,
            roll_marks=self._roll_marks,
        )

    def close_files(self) -> None:
        """A log opens its files when it first needs them."""
        for segment in self._segments:
            segment.close()

    def _lacks_something_before(self, segment: Segment) -> bool:
        """Whether what should come before the segment is lost; see `quire.storage.gap_mark`."""
        compacted_by_others = self._may_have_gaps and self._foreign
        return self.end_offset < segment.base_offset > self._recovery_point and not compacted_by_others

    def _check_that_it_is_torn(self, segment: Segment, size: int, damage: DamagedBatchError) -> None:
        behind = find_intact(segment.file, damage.position, size, self.end_offset)
        hole = behind is not None and is_hole(segment.file, damage.position, behind, self.end_offset)
        if (behind is not None and not hole) or self._any_intact_from(segment.base_offset + 1):
            raise DamagedLogError(segment.path, damage.position, self.end_offset, damage.reason)

    def _any_intact_from(self, base_offset: int) -> bool:
        """Whether later segments hold anything. They were begun when all before them was durable."""
        later = [segment for segment in self._segments if segment.base_offset >= base_offset]
        return any(find_intact(each.file, 0, each.size, self.end_offset) is not None for each in later)

    def _cut(self, segment: Segment, size: int, damage: DamagedBatchError) -> None:
        segment.cut_tail()
        # Were the damage back after a clean stop and a power cut, nobody would look for it: it has to be gone for good.
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
        self._remove_for_good(later)

    def _cut_remains(self, segment: Segment, size: int, damage: DamagedBatchError) -> None:
        """Nothing is missing before the next segment: what is behind the last batch is of a write that failed.

        It was cut off then, when the disk was full, say, and a power cut has brought it back.
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
        self._remove_for_good(later)

    def _learn_epochs_before(self, end_offset: int) -> None:
        """Epochs at or after `end_offset` are to be found by the scan; without a file, so are those before."""
        if self._epochs_known:
            self._epochs.truncate_from_end(end_offset)
            return
        self._epochs_known = True
        try:
            for segment in self._segments.between(self._segments[0].base_offset, end_offset):
                for _, header in batch_scan.headers(segment.file, 0, segment.size):
                    if header.leader_epoch > self._epochs.latest:
                        self._epochs.assign(header.leader_epoch, header.base_offset)
        except DamagedBatchError as error:
            _log.error("leader epochs after a damaged batch are lost: %s", error)

    def _is_below_known_epochs(self, first: Segment) -> bool:
        """Whether the segment begins with an older leader's batch than the epochs before it allow."""
        try:
            _, header = next(batch_scan.headers(first.file, 0, first.size))
        except (DamagedBatchError, StopIteration):
            return False
        return 0 <= header.leader_epoch < self._epochs.latest

    def _producers_after_clean_stop(self) -> ProducerState:
        # A clean stop leaves a snapshot unless there was nothing to remember: no snapshot, no producers, no scan.
        if not self._snapshots.offsets:
            return ProducerState()
        return replay_producers(self._segments, self._snapshots, self._segments[0].base_offset, self.end_offset)

    def _save_producers(self, offset: int) -> None:
        """As when the segment at `offset` was begun."""
        assert self._producers is not None
        if len(self._producers):
            self._unsynced.append(self._snapshots.write(offset, self._producers))

    def _check_transaction_indexes(self) -> None:
        """Of segments that were not scanned. Where Kafka's own check fails, nothing beside the log is believed."""
        segments = self._segments
        unbelieved = [segments.slot_of(offset - 1) for offset in marked_offsets(self._names)]
        for slot, segment in enumerate(segments):
            if segment.size == 0 or segment.base_offset >= self._scanned_from:
                continue
            end_offset = segments[slot + 1].base_offset if slot + 1 < len(segments) else self.end_offset
            try:
                if slot in unbelieved:
                    reason = CorruptIndexError("a power loss may have taken them")
                    self._rebuild_indexes(segment, reason)
                    raise reason
                if not self._has_indexes(segment):
                    raise CorruptIndexError("an index is missing")
                segment.transaction_index.check(end_offset)
                if self._has(segment, file_names.TRANSACTION_INDEX) and not segment.transaction_index.count:
                    raise CorruptIndexError("it is empty")
            except CorruptIndexError as error:
                rebuild_transaction_index(segments, self._snapshots, segment, end_offset, error)
                self._unsynced += segment.transaction_index.paths

    def _save_indexes(self, first: Segment) -> None:
        for segment in self._segments.between(first.base_offset, self._segments.active.base_offset):
            segment.save_indexes()
            self._unsynced += segment.index_paths
            segment.unpin_indexes()
        self._segments.active.pin_indexes()

    def _remove_for_good(self, segments: list[Segment]) -> None:
        if segments:
            self._remove(segments)
            self._disk.sync_dir(self._folder)

    def _remove(self, segments: list[Segment]) -> None:
        for segment in segments:
            for path in segment.retire():
                self._disk.remove(path)
            segment.close()

    def _lacks_an_index(self, segment: Segment) -> bool:
        """A completed time index has at least the highest timestamp: if it is empty, it lost what it had.

        So is that of a segment whose records have no time, which is rare, and scanned again at every start.
        """
        return not self._has_indexes(segment) or self._disk.file_size(segment.time_index.path) == 0

    def _has_indexes(self, segment: Segment) -> bool:
        return all(self._has(segment, suffix) for suffix in (file_names.OFFSET_INDEX, file_names.TIME_INDEX))

    def _has(self, segment: Segment, suffix: str) -> bool:
        return file_names.offset_file(segment.base_offset, suffix) in self._names

    def _segment(self, base_offset: int) -> Segment:
        size = self._disk.file_size(f"{self._folder}/{file_names.offset_file(base_offset, file_names.LOG)}")
        segment = Segment(
            self._disk, self._folder, base_offset, self._config, self._cache, now_ms=self._now_ms, size=size
        )
        if not any(self._has(segment, each) for each in (file_names.TRANSACTION_INDEX, file_names.ABORTED_COUNT)):
            segment.transaction_index.reset()
            if size == 0 and self._has_indexes(segment) and not any(map(self._disk.file_size, segment.index_paths)):
                segment.indexes_are_saved()
        return segment

    def _begin_segment(self, base_offset: int) -> None:
        """The log goes on, and ends for now, at this offset."""
        active = self._segments.active
        self._roll_marks.append(make_mark(self._disk, self._folder, base_offset))
        if active.save_indexes():
            self._unsynced += active.index_paths
        active.unpin_indexes()
        self._segments.add(self._new_segment(base_offset))
        self.end_offset = base_offset

    def _new_segment(self, base_offset: int) -> Segment:
        return Segment.create(self._disk, self._folder, base_offset, self._config, self._cache, now_ms=self._now_ms)
