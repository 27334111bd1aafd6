"""Repairs damaged segments of partitions that have other replicas.

    a read, a search, a truncation or the cleaner finds a damaged batch ──▶ damage_found
        the partition has no other replica    the reader gets CORRUPT_MESSAGE, as long as the damage is there
        it has                                the reader gets KAFKA_STORAGE_ERROR, which clients retry, and a repair
                                              begins. What is intact is still served, and writes go on.

    a repair       the active segment is rolled first
                   jobs write a copy (`quire.storage.repair`); what this replica lacks comes from another member of the
                   ISR, as a consumer's fetch, so only committed batches (KIP-392)
                   the copy replaces the segment, and is checked when it is read for the first time

One repair per partition and a few per node run at a time. A source that cannot be reached, is damaged there too, or
sends what does not fit is passed over for the next one; when none is left, the repair begins again after a pause. The
same happens if the log is truncated or deleted, or retention or compaction changes the segments, meanwhile: the copy is
dropped. A crash at any time leaves the damaged segment, which will be found again, or the repaired one.
"""

import errno
import logging
from collections import deque
from typing import TYPE_CHECKING

from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quire.protocol.schema import Message
from quire.replication.partition import Partition
from quire.storage import file_names
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.errors import is_shortage
from quire.storage.repair.segment_copy import PORTION_BYTES, Complete, Copied, Fetched, Missing, Progress, SegmentCopy
from quire.storage.repair.targets import Target, find_targets, may_have_gaps
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.segment import Segment

if TYPE_CHECKING:
    from quire.node.node import Node

log = logging.getLogger("quire.replicas")

AT_ONCE = 2
"""Each has at most one job and one fetch at a time, and a few megabytes in memory."""
FETCH_VERSION = 13
FIRST_PAUSE_MS = 200.0
LONGEST_PAUSE_MS = 60_000.0


class SegmentRepairs:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._repairs: dict[Partition, _Repair] = {}
        """Those that run, wait for their turn, or wait for their next attempt."""
        self._waiting: deque[_Repair] = deque()
        self._running = 0
        self._stopped = False

    def stop(self) -> None:
        """Begins no more work. A job may still be running."""
        self._stopped = True

    def close(self) -> None:
        """Discards copies that are not complete. Jobs must have ended."""
        self.stop()
        for repair in self._repairs.values():
            repair.drop_copy()
        self._repairs.clear()

    @property
    def is_busy(self) -> bool:
        """Whether there is a segment to repair."""
        return bool(self._repairs)

    def damage_found(self, partition: Partition, damage: DamagedBatchError) -> ApiError:
        """Has the segment repaired if another replica may have it; returns the error for the reader."""
        if not self._sources(partition):
            return damage
        if partition not in self._repairs and not self._stopped:
            self._repairs[partition] = repair = _Repair(self, self._node, partition, damage)
            self._node.clock.call_soon(lambda: self._node.moves.damage_found(partition))
            self._wait(repair)
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition} is being repaired: {damage.message}")

    def sources(self, partition: Partition) -> list[int]:
        """The brokers that can be asked now, the best first: the leader, other members of the ISR, other replicas."""
        brokers = self._node.image.brokers
        return [each for each in self._sources(partition) if each in brokers and not brokers[each].fenced]

    def _sources(self, partition: Partition) -> list[int]:
        topic = self._node.image.topic_by_id(partition.topic_id)
        image = None if topic is None else topic.partitions.get(partition.index)
        if image is None:
            return []
        own = self._node.node_id
        ordered = dict.fromkeys((image.leader, *image.isr, *image.replicas))
        return [each for each in ordered if each != own and each in image.replicas]

    # --- For `_Repair`

    def is_of_use(self, partition: Partition) -> bool:
        """Whether the partition is still here."""
        return not self._stopped and self._node.partitions.has(partition)

    def ended(self, repair: "_Repair", pause_ms: float | None) -> None:
        """An attempt has ended: with a pause the next one follows, without one the repair is done or pointless."""
        self._running -= 1
        if pause_ms is None:
            del self._repairs[repair.partition]
        else:
            self._node.clock.call_later(pause_ms, lambda: self._wait(repair))
        self._start()

    def _wait(self, repair: "_Repair") -> None:
        if not self._stopped:
            self._waiting.append(repair)
            # Not at once: this may be within a read.
            self._node.clock.call_soon(self._start)

    def _start(self) -> None:
        while self._waiting and self._running < AT_ONCE and not self._stopped:
            self._running += 1
            self._waiting.popleft().begin()


class _Repair:
    """The repair of one segment, with all its attempts."""

    __slots__ = (
        "_attempts",
        "_base_offset",
        "_copied_bytes",
        "_copy",
        "_damage",
        "_directory",
        "_fetched_bytes",
        "_folder",
        "_left",
        "_node",
        "_pause_ms",
        "_repairs",
        "_sources",
        "_truncations",
        "_used",
        "_why",
        "partition",
    )

    def __init__(self, repairs: SegmentRepairs, node: "Node", partition: Partition, damage: DamagedBatchError) -> None:
        self._repairs = repairs
        self._node = node
        self._damage = damage
        self._base_offset = _base_offset_of(damage)
        self._directory: LogDirectory | None = None
        self._folder: str | None = None
        """That of the log, while the cleaner leaves it alone."""
        self._left: list[Target] = []
        """The segments to be replaced, that which is being copied first."""
        self._copy: SegmentCopy | None = None
        self._sources: list[int] = []
        """Brokers that were not asked yet for what is missing; the first is being asked."""
        self._used: dict[int, None] = {}
        self._why: list[str] = []
        """What was wrong with the sources."""
        self._truncations = 0
        self._pause_ms = FIRST_PAUSE_MS
        self._attempts = 0
        self._copied_bytes = self._fetched_bytes = 0
        self.partition = partition

    def begin(self) -> None:
        """Begins an attempt."""
        if not self._repairs.is_of_use(self.partition):
            self._repairs.ended(self, None)
            return
        partition_log = self.partition.log
        damaged = self._segment()
        if damaged is None or not self._node.cleaner.lend(partition_log):
            # It is gone, or the cleaner replaces segments now, maybe this one.
            self._repairs.ended(self, None if damaged is None else FIRST_PAUSE_MS)
            return
        self._folder = partition_log.path
        self._directory = self._node.partitions.directory_of(self.partition)
        self._left = []
        self._truncations = partition_log.truncations
        self._attempts += 1
        if self._attempts == 1:
            log.warning(
                "damaged segment found partition=%s segment=%d: it is repaired from another replica: %s",
                self.partition,
                self._base_offset,
                self._damage.message,
            )
        try:
            if damaged is partition_log.segments[-1]:
                partition_log.roll(self._node.clock.now_ms())
        except (OSError, ApiError) as error:
            self._failed(error)
            return
        key = (self.partition.topic, self.partition.index)
        self._left = list(find_targets(partition_log, damaged, self._directory.cleaned_offsets.get(key)))
        self._copied_bytes = self._fetched_bytes = 0
        self._used = {}
        self._copy_next()

    def drop_copy(self) -> None:
        if self._copy is not None:
            try:
                self._copy.drop()
            except OSError as error:
                self._disk_failed(error)
            self._copy = None

    # --- Copying

    def _copy_next(self) -> None:
        assert self._directory is not None
        cleaned_offset = self._directory.cleaned_offsets.get((self.partition.topic, self.partition.index))
        partition_log = self.partition.log
        self._copy = SegmentCopy(
            self._node.disk,
            partition_log,
            self._left[0],
            may_have_gaps=may_have_gaps(partition_log, cleaned_offset),
        )
        self._all_sources()
        self._step(None)

    def _all_sources(self, first: int | None = None) -> None:
        found = self._repairs.sources(self.partition)
        self._sources = sorted(found, key=lambda each: each != first)
        self._why = []

    def _step(self, fetched: Fetched | None) -> None:
        copy = self._copy
        assert copy is not None
        self._node.jobs.submit(lambda: copy.work(fetched), self._job_done, self._failed)

    def _job_done(self, progress: Progress) -> None:
        if not self._is_current():
            self._give_up("its log has changed")
        elif isinstance(progress, Copied):
            self._copied_bytes += progress.size_bytes
            self._all_sources()
            self._step(None)
        elif isinstance(progress, Missing):
            self._fetch(progress.offset)
        else:
            self._swap(progress)

    def _is_current(self) -> bool:
        """Whether the log is open, was not truncated, and still has the segments."""
        partition_log, directory = self.partition.log, self._directory
        if not self._repairs.is_of_use(self.partition) or partition_log.closed:
            return False
        assert directory is not None
        there = partition_log.segments
        return (
            directory.failure is None
            and partition_log.truncations == self._truncations
            and all(any(target.segment is each for each in there) for target in self._left)
        )

    def _segment(self) -> Segment | None:
        return next((each for each in self.partition.log.segments if each.base_offset == self._base_offset), None)

    # --- Fetching

    def _fetch(self, offset: int) -> None:
        if not self._sources:
            self._give_up("; ".join(self._why) or "no other replica can be reached")
            return
        source = self._sources[0]
        partition = FetchPartition(
            partition=self.partition.index, fetch_offset=offset, partition_max_bytes=PORTION_BYTES
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=PORTION_BYTES,
            session_epoch=-1,
            topics=[FetchTopic(topic_id=self.partition.topic_id, partitions=[partition])],
        )
        answer: Pending[Message | ApiError] = self._node.broker_links.send(source, request, FETCH_VERSION)
        answer.when_done(lambda outcome: self._answered(source, offset, outcome))

    def _answered(self, source: int, offset: int, outcome: Message | ApiError) -> None:
        if not self._is_current():
            self._give_up("its log has changed")
        elif isinstance(outcome, ApiError):
            self._skip_source(source, offset, outcome.message)
        else:
            assert isinstance(outcome, FetchResponse)
            answers = [answer for topic in outcome.responses for answer in topic.partitions]
            code = ErrorCode(outcome.error_code) if not answers else ErrorCode(answers[0].error_code)
            if not answers or code is not ErrorCode.NONE:
                self._skip_source(source, offset, f"broker {source} cannot send offset {offset}: {code.name}")
                return
            records = memoryview(answers[0].records or b"")  # type: ignore[arg-type]
            fetched = Fetched(source, records, answers[0].high_watermark)
            copy = self._copy
            assert copy is not None

            def worked(progress: Progress) -> None:
                self._used[source] = None
                self._all_sources(source)
                self._job_done(progress)

            def failed(error: Exception) -> None:
                if isinstance(error, ApiError) and self._is_current():
                    self._skip_source(source, offset, error.message)
                else:
                    self._failed(error)

            self._node.jobs.submit(lambda: copy.work(fetched), worked, failed)

    def _skip_source(self, source: int, offset: int, why: str) -> None:
        self._why.append(why)
        self._sources = [each for each in self._sources if each != source]
        self._fetch(offset)

    # --- Replacing

    def _swap(self, complete: Complete) -> None:
        partition, directory = self.partition, self._directory
        assert directory is not None
        target = self._left[0]
        try:
            if len(self._left) == 1:
                # What was copied may not be compacted as far.
                key = (partition.topic, partition.index)
                directory.cleaned_offsets.truncated(key, partition.log.start_offset)
            swapped = partition.log.replace_damaged(target.segment, complete.size, lacks_aborted=complete.lacks_aborted)
        except OSError as error:
            # Some files are renamed and some are not. Only a start can repair that, even if the disk was merely full.
            lasting = OSError(errno.EIO, f"a segment could not be replaced ({error.strerror})", error.filename)
            self._failed(lasting if is_shortage(error) else error)
            return
        assert swapped, "the segments are still there"
        self._copy = None
        self._fetched_bytes += complete.fetched_bytes
        del self._left[0]
        partition.log_repaired()
        folder = partition.log.path
        # Before the next one, so that a crash never finds two incomplete swaps.
        self._node.jobs.submit(lambda: self._node.disk.sync_dir(folder), lambda _: self._swapped(), self._failed)

    def _swapped(self) -> None:
        if not self._left:
            log.warning(
                "damaged segment repaired partition=%s segment=%d sources=%s fetched_bytes=%d own_bytes=%d",
                self.partition,
                self._base_offset,
                ",".join(map(str, self._used)) or "none",
                self._fetched_bytes,
                self._copied_bytes,
            )
            # If nothing was wrong here, what found the damage may be: it would find it again at once.
            self._end(None if self._fetched_bytes else self._next_pause_ms())
        elif self._is_current():
            self._copy_next()
        else:
            self._give_up("its log has changed")

    # --- Ending

    def _failed(self, error: Exception) -> None:
        if not self._is_current():
            self._give_up("its log has changed")
        elif isinstance(error, OSError):
            self._disk_failed(error)
            self._give_up(str(error))
        else:
            if not isinstance(error, ApiError):
                log.error("repairing %s failed unexpectedly", self.partition, exc_info=error)
            self._give_up(str(error))

    def _disk_failed(self, error: OSError) -> None:
        if self._directory is not None:
            self._directory.fail(error)

    def _give_up(self, why: str) -> None:
        """Ends the attempt; there is another one if the partition and the segment are still there."""
        if not self._repairs.is_of_use(self.partition) or self.partition.log.closed or self._segment() is None:
            self._end(None)
            return
        pause_ms = self._next_pause_ms()
        log.error(
            "damaged segment not repaired partition=%s segment=%d: %s; the next attempt is in %d ms",
            self.partition,
            self._base_offset,
            why,
            pause_ms,
        )
        self._end(pause_ms)

    def _next_pause_ms(self) -> float:
        pause_ms, self._pause_ms = self._pause_ms, min(2 * self._pause_ms, LONGEST_PAUSE_MS)
        return pause_ms

    def _end(self, pause_ms: float | None) -> None:
        self.drop_copy()
        if self._folder is not None:
            self._node.cleaner.take_back(self.partition.log, self._folder)
            self._folder = None
        self._repairs.ended(self, pause_ms)


def _base_offset_of(damage: DamagedBatchError) -> int:
    """The base offset of the segment, -1 if its file is no longer in use."""
    parsed = file_names.parse_offset_file(damage.path.rpartition("/")[2])
    return -1 if parsed is None else parsed[0]
