"""`.snapshot` files: the producers of a partition as they were before the offset in the file's name.

Kafka's format: a version (int16), then the ProducerSnapshot message, which begins with the CRC-32C (uint32) of what
follows it. Kafka stores only the last batch of each producer: a node that starts from such a snapshot refuses retries
of the four batches before it, although they are in the log. So Quire writes one entry per remembered batch, the newest
last, which is the entry that Kafka uses.

Snapshots are written without a sync. If one is corrupt, the state is rebuilt from an older snapshot and the headers of
the log after it.

The snapshot of many producers takes too long for the event loop. It only creates the file (`ComingSnapshot`), and the
job of the next flush writes it. Until then the snapshot in memory is used.
"""

import logging
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from struct import Struct

from quire.protocol.codec import decode
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.producer_snapshot import ProducerEntry as SnapshotEntry
from quire.protocol.messages.producer_snapshot import ProducerSnapshot
from quire.protocol.records.checksum import crc32c
from quire.seams import Disk, File
from quire.storage import file_names
from quire.storage.producers.producer_state import (
    NO_OFFSET,
    NO_SEQUENCE,
    REMEMBERED_BATCHES,
    ProducerEntry,
    ProducerState,
    RememberedBatch,
)
from quire.storage.whole_file import write_whole

VERSION = 1

CHECKSUM_FROM = 6

AT_ONCE_MAX = 1_000
"""Up to this many producers are written on the event loop, which takes up to three milliseconds."""

_ENTRY = Struct(">qhiqiqiq")
"""A `SnapshotEntry`: producer id, epoch, sequence, offset and its delta, timestamp, coordinator epoch, transaction."""

_NO_BATCHES = [RememberedBatch(NO_SEQUENCE, NO_OFFSET, 0, -1)]

_log = logging.getLogger("quire.storage")


class CorruptSnapshotError(Exception):
    """A snapshot that is torn, damaged or of another version."""


def to_bytes(state: Iterable[ProducerEntry]) -> bytes:
    # One loop, without the message's class: a roll writes all producers, and requests may wait for it.
    pack = _ENTRY.pack
    entries = []
    for of in state:
        batches = of.batches or _NO_BATCHES
        for batch in batches[:-1]:
            has = (batch.last_sequence, batch.last_offset, batch.offset_delta, batch.timestamp)
            entries.append(pack(of.producer_id, of.epoch, *has, of.coordinator_epoch, NO_OFFSET))
        last = batches[-1]
        has = (last.last_sequence, last.last_offset, last.offset_delta, of.last_timestamp)
        entries.append(pack(of.producer_id, of.epoch, *has, of.coordinator_epoch, of.current_txn_first_offset))
    content = len(entries).to_bytes(4, "big") + b"".join(entries)
    return VERSION.to_bytes(2, "big") + crc32c(content).to_bytes(4, "big") + content


def from_bytes(content: bytes) -> ProducerState:
    version = int.from_bytes(content[:2], "big")
    if version != VERSION:
        raise CorruptSnapshotError(f"version {version} is not {VERSION}")
    try:
        snapshot = decode(ProducerSnapshot, content, VERSION, 2)
    except ProtocolError as error:
        raise CorruptSnapshotError(str(error)) from error
    if crc32c(content[CHECKSUM_FROM:]) != snapshot.crc:
        raise CorruptSnapshotError("the checksum does not match")
    state = ProducerState()
    for entry in snapshot.producer_entries:
        state.put(_with_entry(state.get(entry.producer_id), entry))
    return state


def _with_entry(known: ProducerEntry | None, entry: SnapshotEntry) -> ProducerEntry:
    """The producer with one more entry: the last entry has the state, and batches of the same epoch are collected."""
    producer = ProducerEntry(entry.producer_id, entry.epoch)
    if known is not None and known.epoch == entry.epoch:
        producer.batches = known.batches
    producer.last_timestamp = entry.timestamp
    producer.coordinator_epoch = entry.coordinator_epoch
    producer.current_txn_first_offset = entry.current_txn_first_offset
    if entry.last_offset >= 0:
        producer.batches.append(
            RememberedBatch(entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp)
        )
        del producer.batches[:-REMEMBERED_BATCHES]
    return producer


def _state_of(producers: list[ProducerEntry]) -> ProducerState:
    state = ProducerState()
    for producer in producers:
        state.put(producer.copy(0))
    return state


class ComingSnapshot:
    """A snapshot whose file is still empty."""

    __slots__ = ("_file", "producers")

    def __init__(self, file: File, producers: list[ProducerEntry]) -> None:
        self._file = file
        self.producers = producers

    def write(self) -> None:
        """Writes and syncs the file. Runs in a job, also if the file has been renamed or removed meanwhile."""
        content = to_bytes(self.producers)
        self._file.pwritev([content], 0)
        self._file.truncate(len(content))
        self._file.sync()

    def close(self) -> None:
        self._file.close()


class SnapshotLoader:
    """`run` in a job, `finish` on the event loop: a snapshot of thousands of producers takes long to read."""

    def __init__(self, snapshots: "ProducerSnapshots", offset: int | None, coming: "ComingSnapshot | None") -> None:
        self._snapshots = snapshots
        self._coming = coming
        self._error: Exception | None = None
        self.offset = offset
        """None if there is no snapshot."""

    def run(self) -> ProducerState | None:
        """The producers in it: none if there is no snapshot. None if it cannot be read."""
        if self.offset is None:
            return ProducerState()
        if self._coming is not None:
            return _state_of(self._coming.producers)
        try:
            return self._snapshots.load(self.offset)
        except (CorruptSnapshotError, FileNotFoundError) as error:
            self._error = error
            return None

    def finish(self) -> None:
        """Removes a snapshot that cannot be read."""
        if self._error is not None and self.offset in self._snapshots.offsets:
            assert self.offset is not None
            self._snapshots.drop_unreadable(self.offset, self._error)


class ProducerSnapshots:
    """The snapshot files of one partition."""

    __slots__ = ("_coming", "_disk", "_folder", "offsets")

    def __init__(self, disk: Disk, folder: str, offsets: list[int]) -> None:
        self._disk = disk
        self._folder = folder
        self._coming: dict[int, ComingSnapshot] = {}
        self.offsets = sorted(offsets)

    def write_or_begin(self, offset: int, state: ProducerState) -> str | ComingSnapshot:
        """As `write` if there are few producers; otherwise a snapshot that a job must write."""
        if len(state) <= AT_ONCE_MAX:
            return self.write(offset, state)
        path = self._path(offset)
        if self._disk.exists(path):
            # Not overwritten: the file may be the one of an older snapshot that a job is writing.
            self._disk.remove(path)
        coming = ComingSnapshot(self._disk.open(path, create=True), state.freeze())
        self._coming[offset] = coming
        if offset not in self.offsets:
            insort(self.offsets, offset)
        return coming

    def is_written(self, written: ComingSnapshot) -> None:
        """From now on the file is used."""
        self._coming = {offset: coming for offset, coming in self._coming.items() if coming is not written}

    def write(self, offset: int, state: ProducerState) -> str:
        """Writes `state` as the snapshot at `offset`; returns the path of the file, which the caller must sync."""
        path = self._path(offset)
        write_whole(self._disk, path, to_bytes(state))
        if offset not in self.offsets:
            insort(self.offsets, offset)
        return path

    def newest(self, end_offset: int) -> tuple[int, ProducerState] | None:
        """The newest readable snapshot at or before `end_offset`. Unreadable ones are removed."""
        while (slot := bisect_right(self.offsets, end_offset) - 1) >= 0:
            offset = self.offsets[slot]
            coming = self._coming.get(offset)
            if coming is not None:
                return offset, _state_of(coming.producers)
            try:
                return offset, self.load(offset)
            except (CorruptSnapshotError, FileNotFoundError) as error:
                self.drop_unreadable(offset, error)
        return None

    def loader(self, end_offset: int) -> "SnapshotLoader":
        """For a job: loads the newest snapshot at or before `end_offset`."""
        slot = bisect_right(self.offsets, end_offset) - 1
        offset = self.offsets[slot] if slot >= 0 else None
        return SnapshotLoader(self, offset, None if offset is None else self._coming.get(offset))

    def load(self, offset: int) -> ProducerState:
        """The snapshot in the file; CorruptSnapshotError or FileNotFoundError."""
        return from_bytes(self._disk.read_file(self._path(offset)))

    def drop_unreadable(self, offset: int, error: Exception) -> None:
        _log.warning("not using the producer snapshot %s: %s", self._path(offset), error)
        self._remove([offset])

    def remove_after(self, offset: int) -> None:
        self._remove(self.offsets[bisect_right(self.offsets, offset) :])

    def remove_before(self, offset: int) -> None:
        self._remove(self.offsets[: bisect_left(self.offsets, offset)])

    def remove_at(self, offsets: Iterable[int]) -> None:
        self._remove([offset for offset in offsets if offset in self.offsets])

    def remove_strays(self, base_offsets: Iterable[int]) -> None:
        """Keeps those at the start of segments and the newest, which a clean stop writes; removes the others."""
        kept = {*base_offsets, *self.offsets[-1:]}
        self._remove([offset for offset in self.offsets if offset not in kept])

    def remove_all(self) -> None:
        self._remove(self.offsets.copy())

    def _remove(self, offsets: list[int]) -> None:
        for offset in offsets:
            path = self._path(offset)
            if self._disk.exists(path):
                self._disk.remove(path)
            self.offsets.remove(offset)
            self._coming.pop(offset, None)

    def _path(self, offset: int) -> str:
        return f"{self._folder}/{file_names.offset_file(offset, file_names.SNAPSHOT)}"
