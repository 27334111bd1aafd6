"""`.snapshot` files: the producers of a partition as they were before the offset in the file's name.

Kafka's format: a version (int16), then the ProducerSnapshot message, which begins with the CRC-32C (uint32) of all that
follows it. Kafka keeps each producer's last batch; a node that starts from such a snapshot refuses the four before it
when they are sent again, though they are in the log. So a producer has an entry here for each batch that is remembered,
the newest last, which is the one that counts for Kafka.

Snapshots are written without a sync: one that does not check out is as good as none, and the state comes back from an
older one and the headers of the log behind it.
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
from quire.seams import Disk
from quire.storage import file_names
from quire.storage.producer_state import (
    NO_OFFSET,
    NO_SEQUENCE,
    REMEMBERED_BATCHES,
    ProducerEntry,
    ProducerState,
    RememberedBatch,
)

VERSION = 1

CHECKSUM_FROM = 6

_ENTRY = Struct(">qhiqiqiq")
"""A `SnapshotEntry`: producer id, epoch, sequence, offset and its delta, timestamp, coordinator epoch, transaction."""

_NO_BATCHES = [RememberedBatch(NO_SEQUENCE, NO_OFFSET, 0, -1)]

_log = logging.getLogger("quire.storage")


class CorruptSnapshotError(Exception):
    """A snapshot that is torn, damaged or of another version."""


def to_bytes(state: ProducerState) -> bytes:
    # One loop, and not through the message's class: at a roll everybody waits while all producers are written.
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
    """The producer with one entry more: what is in the last one holds, batches of the same epoch add up."""
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

    def remove_at(self, offsets: Iterable[int]) -> None:
        self._remove([offset for offset in offsets if offset in self.offsets])

    def remove_strays(self, base_offsets: Iterable[int]) -> None:
        """Leaves those of segments, and the newest: every clean stop makes one, which is of use until the next."""
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

    def _path(self, offset: int) -> str:
        return f"{self._folder}/{file_names.offset_file(offset, file_names.SNAPSHOT)}"
