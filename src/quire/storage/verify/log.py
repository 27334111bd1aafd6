"""Verifies one partition's log: every batch, and all other files of the partition against the batches."""

from collections.abc import Callable, Generator, Iterator

from quire.protocol.records.batch import HEADER_BYTES, BatchHeader, read_header
from quire.protocol.records.invalid import InvalidRecords
from quire.seams import Disk, File
from quire.storage import file_names, leader_epochs
from quire.storage.directory import partition_metadata
from quire.storage.directory.checkpoints import CheckpointError
from quire.storage.indexes.index_file import CorruptIndexError, IndexCache
from quire.storage.indexes.offset_index import OffsetIndex
from quire.storage.indexes.time_index import TimeIndex
from quire.storage.indexes.transaction_index import AbortedTransaction, TransactionIndex
from quire.storage.producers.end_marker import EndMarker
from quire.storage.producers.producer_snapshot import CorruptSnapshotError, from_bytes
from quire.storage.producers.producer_state import ProducerState
from quire.storage.recovery.roll_mark import marked_offsets
from quire.storage.scanning import segment_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.batch_walk_native import BatchWalk
from quire.storage.scanning.damage import next_intact
from quire.storage.scanning.neighbours import intact_at, only_its_offset_is_wrong
from quire.storage.verify.finding import Finding

_MAX_OFFSET = (1 << 63) - 1
_STEP_BYTES = 16 << 20


class LogVerifier:
    """Verifies the files of one folder; it is also the visitor of the scan."""

    def __init__(
        self, disk: Disk, folder: str, progress: Callable[[int], None], recovery_point: int | None = None
    ) -> None:
        """`recovery_point` is for a log that was not closed: faults in other files from there on are not damage."""
        self._disk = disk
        self._folder = folder
        self._progress = progress
        self._recovery_point = recovery_point
        self._producers = ProducerState()
        self._aborted: list[AbortedTransaction] = []
        self._epochs: dict[int, int] = {}
        self._latest_epoch = -1
        self._max_timestamp = -1

    def findings(self) -> Iterator[Finding]:
        names = self._disk.list_dir(self._folder)
        numbered = [file_names.parse_offset_file(name) for name in names]
        files = [parsed for parsed in numbered if parsed is not None]
        bases = [offset for offset, suffix in files if suffix == file_names.LOG]
        end_offset = bases[0] if bases else 0
        scanned_from = self._scanned_from(bases)
        unbelieved = marked_offsets(names)
        for base, limit in zip(bases, [*bases, _MAX_OFFSET][1:], strict=True):
            self._aborted = []
            end_offset = yield from self._verify_batches(base, max(end_offset, base), limit)
            is_rebuilt_at_start = base >= scanned_from or (self._recovery_point is not None and limit in unbelieved)
            for finding in self._verify_indexes(base, min(limit, end_offset)):
                yield finding._replace(is_rebuilt_at_start=is_rebuilt_at_start)
        for offset, suffix in files:
            if suffix in file_names.INDEXES and offset not in bases:
                yield Finding(self._path(offset, suffix), None, "it has no log")
            if suffix == file_names.SNAPSHOT:
                for finding in self._verify_snapshot(self._path(offset, suffix)):
                    yield finding._replace(is_rebuilt_at_start=offset > scanned_from)
        yield from self._verify_epochs(bases[0] if bases else 0, scanned_from)
        yield from self._verify_topic_id()

    def _scanned_from(self, bases: list[int]) -> int:
        """The base offset of the first segment that the next start will scan, rebuilding its indexes."""
        if self._recovery_point is None:
            return _MAX_OFFSET
        return max((base for base in bases if base <= self._recovery_point), default=0)

    # --- The batches

    def _verify_batches(self, base: int, next_offset: int, limit: int) -> Generator[Finding, None, int]:
        """Yields findings; returns the offset where the segment ends."""
        path = self._path(base, file_names.LOG)
        self._file = file = self._disk.open(path)
        try:
            walk = BatchWalk(base, _MAX_OFFSET, next_offset, limit, _MAX_OFFSET, self._latest_epoch)
            position: int | None = 0
            while position is not None:
                position = yield from self._verify_from(file, position, walk)
            self._max_timestamp = walk.max_timestamp
            return int(walk.next_offset)
        finally:
            file.close()

    def _verify_from(self, file: File, position: int, walk: BatchWalk) -> Generator[Finding, None, int | None]:
        """Yields findings up to the first damage; returns the position at which to continue after it."""
        end = file.size()
        try:
            while position < end:
                reached = segment_scan.scan(file, position, end, walk, self, enough=min(position + _STEP_BYTES, end))
                self._progress(reached - position)
                position = reached
        except DamagedBatchError as damage:
            following = next_intact(file, damage.position, end, walk.next_offset)
            lost = (following if following is not None else end) - damage.position
            reason = damage.reason.rstrip(".")
            yield Finding(file.path, damage.position, f"{reason}; offset {walk.next_offset}, {lost} bytes")
            self._progress((following if following is not None else end) - position)
            return following
        return None

    def visit(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
        if header.base_offset < expected_offset:
            return f"offset {header.base_offset} follows {expected_offset - 1}"
        if header.base_offset > expected_offset:
            following = intact_at(self._file, position + header.size, self._file.size())
            if following is not None and only_its_offset_is_wrong(header, expected_offset, following):
                return f"its offset is {header.base_offset}, the next one {following.base_offset}"
        if 0 <= header.leader_epoch < self._latest_epoch:
            return f"leader epoch {header.leader_epoch} follows {self._latest_epoch}"
        if header.leader_epoch > self._latest_epoch:
            self._latest_epoch = header.leader_epoch
            self._epochs[header.leader_epoch] = header.base_offset
        return None

    def visit_producer(self, header: BatchHeader) -> None:
        self._producers.update(header)

    def visit_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        aborted = self._producers.end_transaction(header, marker)
        if aborted is not None:
            self._aborted.append(aborted)

    # --- The other files

    def _verify_indexes(self, base: int, end_offset: int) -> Iterator[Finding]:
        yield from self._verify_offset_index(base)
        yield from self._verify_time_index(base)
        yield from self._verify_transaction_index(base, end_offset)

    def _verify_offset_index(self, base: int) -> Iterator[Finding]:
        path = self._path(base, file_names.OFFSET_INDEX)
        log = self._disk.open(self._path(base, file_names.LOG))
        try:
            index = OffsetIndex(self._disk, path, base, IndexCache())
            for number, (relative, position) in enumerate(index.ENTRY.iter_unpack(index.entries)):
                if not _has_batch(log, position, base + relative):
                    yield Finding(path, number * index.ENTRY.size, f"there is no batch with offset {base + relative}")
                    return
        except CorruptIndexError as error:
            yield Finding.of_error(path, error)
        finally:
            log.close()

    def _verify_time_index(self, base: int) -> Iterator[Finding]:
        path = self._path(base, file_names.TIME_INDEX)
        last = (-1, -1)
        try:
            index = TimeIndex(self._disk, path, base, IndexCache())
            for number, entry in enumerate(index.ENTRY.iter_unpack(index.entries)):
                if entry[0] < last[0] or entry[1] < last[1] or entry[0] > self._max_timestamp:
                    yield Finding(path, number * index.ENTRY.size, f"timestamp {entry[0]} is not in the log there")
                    return
                last = (entry[0], entry[1])
        except CorruptIndexError as error:
            yield Finding.of_error(path, error)

    def _verify_transaction_index(self, base: int, end_offset: int) -> Iterator[Finding]:
        path = self._path(base, file_names.TRANSACTION_INDEX)
        index = TransactionIndex(self._disk, path, base, IndexCache())
        try:
            index.check(end_offset)
            known = {aborted.last_offset for aborted in index}
        except CorruptIndexError as error:
            yield Finding.of_error(path, error)
            return
        for aborted in self._aborted:
            if aborted.last_offset not in known:
                yield Finding(path, None, f"the transaction aborted at offset {aborted.last_offset} is not in it")

    def _verify_snapshot(self, path: str) -> Iterator[Finding]:
        try:
            from_bytes(self._disk.read_file(path))
        except CorruptSnapshotError as error:
            yield Finding.of_error(path, error)

    def _verify_epochs(self, start_offset: int, scanned_from: int) -> Iterator[Finding]:
        path = f"{self._folder}/{leader_epochs.FILE_NAME}"
        try:
            known = dict(leader_epochs.read_epochs(self._disk, self._folder).entries)
        except CheckpointError as error:
            yield Finding.of_error(path, error)
            return
        for epoch, start in self._epochs.items():
            if epoch not in known and start > start_offset:
                yield Finding(
                    path, None, f"leader epoch {epoch}, from offset {start} on, is not in it", start >= scanned_from
                )

    def _verify_topic_id(self) -> Iterator[Finding]:
        path = f"{self._folder}/{partition_metadata.FILE_NAME}"
        try:
            partition_metadata.parse_partition_metadata(self._disk.read_file(path))
        except FileNotFoundError:
            # The next start writes it.
            return
        except ValueError as error:
            yield Finding.of_error(path, error)

    def _path(self, offset: int, suffix: str) -> str:
        return f"{self._folder}/{file_names.offset_file(offset, suffix)}"


def _has_batch(log: File, position: int, offset: int) -> bool:
    """Whether a batch begins at `position` that does not reach past `offset`, as an index entry requires."""
    try:
        header = read_header(log.pread(HEADER_BYTES, position) if position >= 0 else b"")
    except InvalidRecords:
        return False
    return header.base_offset <= offset and header.last_offset <= offset
