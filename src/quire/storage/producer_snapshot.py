"""`.snapshot` files: the producers of a partition as they were before the offset in the file's name.

Kafka's format: a version (int16), then the ProducerSnapshot message, which begins with the CRC-32C (uint32) of all that
follows it and has each producer's last batch only. Snapshots are written without a sync: one that does not check out is
as good as none, and the state comes back from an older one and the headers of the log behind it.
"""

import logging
from bisect import bisect_left, bisect_right, insort

from quire.protocol.codec import decode, encode
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.producer_snapshot import ProducerEntry as SnapshotEntry
from quire.protocol.messages.producer_snapshot import ProducerSnapshot
from quire.protocol.records.checksum import crc32c
from quire.seams import Disk
from quire.storage import file_names
from quire.storage.producer_state import NO_OFFSET, NO_SEQUENCE, ProducerEntry, ProducerState, RememberedBatch

VERSION = 1

_CHECKSUM_FROM = 6

_log = logging.getLogger("quire.storage")


class CorruptSnapshotError(Exception):
    """A snapshot that is torn, damaged or of another version."""


def to_bytes(state: ProducerState) -> bytes:
    entries = [_to_entry(producer) for producer in state]
    content = bytearray(VERSION.to_bytes(2, "big") + encode(ProducerSnapshot(producer_entries=entries), VERSION))
    content[2:_CHECKSUM_FROM] = crc32c(content[_CHECKSUM_FROM:]).to_bytes(4, "big")
    return bytes(content)


def from_bytes(content: bytes) -> ProducerState:
    version = int.from_bytes(content[:2], "big")
    if version != VERSION:
        raise CorruptSnapshotError(f"version {version} is not {VERSION}")
    try:
        snapshot = decode(ProducerSnapshot, content, VERSION, 2)
    except ProtocolError as error:
        raise CorruptSnapshotError(str(error)) from error
    if crc32c(content[_CHECKSUM_FROM:]) != snapshot.crc:
        raise CorruptSnapshotError("the checksum does not match")
    state = ProducerState()
    for entry in snapshot.producer_entries:
        state.put(_from_entry(entry))
    return state


def _to_entry(producer: ProducerEntry) -> SnapshotEntry:
    last = producer.batches[-1] if producer.batches else None
    return SnapshotEntry(
        producer_id=producer.producer_id,
        epoch=producer.epoch,
        last_sequence=last.last_sequence if last else NO_SEQUENCE,
        last_offset=last.last_offset if last else NO_OFFSET,
        offset_delta=last.offset_delta if last else 0,
        timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_first_offset=producer.current_txn_first_offset,
    )


def _from_entry(entry: SnapshotEntry) -> ProducerEntry:
    producer = ProducerEntry(entry.producer_id, entry.epoch)
    producer.last_timestamp = entry.timestamp
    producer.coordinator_epoch = entry.coordinator_epoch
    producer.current_txn_first_offset = entry.current_txn_first_offset
    if entry.last_offset >= 0:
        producer.batches.append(
            RememberedBatch(entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp)
        )
    return producer


class ProducerSnapshots:
    """The snapshot files of one partition."""

    __slots__ = ("_disk", "_folder", "offsets")

    def __init__(self, disk: Disk, folder: str, offsets: list[int]) -> None:
        self._disk = disk
        self._folder = folder
        self.offsets = sorted(offsets)

    def write(self, offset: int, state: ProducerState) -> str:
        """Keeps `state` as what was known before `offset`; returns the file, which still has to be synced."""
        path = self._path(offset)
        file = self._disk.open(path, create=True)
        try:
            content = to_bytes(state)
            file.pwritev([content], 0)
            file.truncate(len(content))
        finally:
            file.close()
        if offset not in self.offsets:
            insort(self.offsets, offset)
        return path

    def newest(self, end_offset: int) -> tuple[int, ProducerState] | None:
        """The newest readable snapshot at or before `end_offset`. Unreadable ones are removed: they only mislead."""
        while (slot := bisect_right(self.offsets, end_offset) - 1) >= 0:
            offset = self.offsets[slot]
            try:
                return offset, from_bytes(self._disk.read_file(self._path(offset)))
            except (CorruptSnapshotError, FileNotFoundError) as error:
                _log.warning("not using the producer snapshot %s: %s", self._path(offset), error)
                self._remove([offset])
        return None

    def remove_after(self, offset: int) -> None:
        self._remove(self.offsets[bisect_right(self.offsets, offset) :])

    def remove_before(self, offset: int) -> None:
        self._remove(self.offsets[: bisect_left(self.offsets, offset)])

    def remove_all(self) -> None:
        self._remove(self.offsets.copy())

    def _remove(self, offsets: list[int]) -> None:
        for offset in offsets:
            path = self._path(offset)
            if self._disk.exists(path):
                self._disk.remove(path)
            self.offsets.remove(offset)

    def _path(self, offset: int) -> str:
        return f"{self._folder}/{file_names.offset_file(offset, file_names.SNAPSHOT)}"
