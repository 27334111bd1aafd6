# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, no-any-return"
"""The fast path of scanning a segment: regular batches, one after the other, in native code.

A batch is regular if it is whole and intact, begins where the one before it ended (or after a gap that the next batch
confirms), has the same leader epoch, and is not a transaction marker. For such a batch only offsets, timestamp and
producer matter; they are collected here, with the entries for the segment's indexes. At any other batch the walk stops,
and its caller, `segment_scan`, examines the batch and then calls `take`.

If a C compiler is available at installation, Cython compiles this file; otherwise it is interpreted, with the same
results.
"""

from __future__ import annotations

import cython

from quire.protocol.records.checksum import crc32c

if cython.compiled:
    from cython.cimports.quire.protocol.records.crc32c_native import crc32c_at
    from cython.cimports.quire.protocol.records.wire_numbers import int32, int64, uint32
else:
    from quire.protocol.records.wire_numbers import int32, int64, uint32

COMPILED: bool = cython.compiled

_HEADER_BYTES = cython.declare(cython.Py_ssize_t, 61)
_LENGTH_END = cython.declare(cython.Py_ssize_t, 12)
_CRC_FROM = cython.declare(cython.Py_ssize_t, 21)
_LEAST_LENGTH = cython.declare(cython.longlong, 49)
_MOST_RELATIVE = cython.declare(cython.longlong, 0x7FFFFFFF)
_TRANSACTIONAL = cython.declare(cython.longlong, 0x10)
_CONTROL = cython.declare(cython.longlong, 0x20)

# A producer's first batch gives the start of its transaction; of the later ones only the last five are remembered.
_BATCHES_THAT_COUNT = cython.declare(cython.Py_ssize_t, 6)


@cython.cfunc
@cython.inline
def _put(out: bytearray, value: cython.longlong, size: cython.int) -> cython.void:
    while size > 0:
        size -= 1
        out.append((value >> (8 * size)) & 0xFF)


@cython.cclass
class BatchWalk:
    """The state of a walk over one segment. The caller sets the fields before it begins."""

    base_offset = cython.declare(cython.longlong, visibility="public")
    """The base offset of the segment."""
    index_interval = cython.declare(cython.longlong, visibility="public")
    next_offset = cython.declare(cython.longlong, visibility="public")
    """The expected base offset of the next batch."""
    end_limit = cython.declare(cython.longlong, visibility="public")
    """The base offset of the next segment."""
    gaps_before = cython.declare(cython.longlong, visibility="public")
    """Up to this offset a batch may begin after a gap, if the next batch confirms its offset."""
    leader_epoch = cython.declare(cython.longlong, visibility="public")
    first_timestamp = cython.declare(cython.longlong, visibility="public")
    max_timestamp = cython.declare(cython.longlong, visibility="public")
    max_timestamp_offset = cython.declare(cython.longlong, visibility="public")
    indexed_timestamp = cython.declare(cython.longlong, visibility="public")
    """The highest timestamp in the time index."""
    unindexed_bytes = cython.declare(cython.longlong, visibility="public")
    offset_entries = cython.declare(bytearray, visibility="public")
    time_entries = cython.declare(bytearray, visibility="public")
    producers = cython.declare(dict, visibility="public")
    """Producer id -> headers of its relevant batches since the caller last emptied this."""

    def __init__(
        self,
        base_offset: int,
        index_interval: int,
        next_offset: int,
        end_limit: int,
        gaps_before: int,
        leader_epoch: int,
    ) -> None:
        self.base_offset = base_offset
        self.index_interval = index_interval
        self.next_offset = next_offset
        self.end_limit = end_limit
        self.gaps_before = gaps_before
        self.leader_epoch = leader_epoch
        self.first_timestamp = -1
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.indexed_timestamp = -1
        self.unindexed_bytes = 0
        self.offset_entries = bytearray()
        self.time_entries = bytearray()
        self.producers = {}

    def regular(self, view: memoryview, at: cython.Py_ssize_t, start: cython.longlong) -> int:
        """Walks over regular batches from `at` in the buffer on, which begins at position `start` of the file.

        Returns where in the buffer it stopped: before an irregular batch, or one that is not completely in the buffer.
        """
        data: cython.const[cython.uchar][::1] = view
        filled: cython.Py_ssize_t = len(view)
        length: cython.longlong
        base_offset: cython.longlong
        last_offset: cython.longlong
        leader_epoch: cython.longlong
        attributes: cython.longlong
        checksum: cython.longlong
        stop: cython.Py_ssize_t
        while filled - at >= _HEADER_BYTES and data[at + 16] == 2:
            length = int32(data, at + 8)
            if length < _LEAST_LENGTH or length > filled - at - _LENGTH_END:
                break
            stop = at + _LENGTH_END + cython.cast(cython.Py_ssize_t, length)
            base_offset = int64(data, at)
            if base_offset != self.next_offset and not self.next_offset < base_offset <= self.gaps_before:
                break
            last_offset = int32(data, at + 23)
            if last_offset < 0 or last_offset >= self.end_limit - base_offset:
                break
            last_offset += base_offset
            if last_offset - self.base_offset > _MOST_RELATIVE:
                break
            if base_offset != self.next_offset and (filled - stop < 8 or int64(data, stop) <= last_offset):
                break
            leader_epoch = int32(data, at + 12)
            if leader_epoch != self.leader_epoch and leader_epoch != -1:
                break
            if cython.compiled:
                checksum = crc32c_at(cython.address(data[0]), at + _CRC_FROM, stop)
            else:
                checksum = crc32c(view[at + _CRC_FROM : stop])
            if checksum != uint32(data, at + 17):
                break
            if data[at + 43] < 0x80:
                attributes = data[at + 22]
                if attributes & _CONTROL or not self._note(int64(data, at + 43), bytes(view[at : at + _HEADER_BYTES])):
                    break
            self._index(start + at, stop - at, last_offset, int64(data, at + 35), int32(data, at + 57))
            self.next_offset = last_offset + 1
            at = stop
        return at

    def take(self, position: int, size: int, last_offset: int, max_timestamp: int, record_count: int) -> None:
        """Continues after one batch that the caller has examined."""
        self._index(position, size, last_offset, max_timestamp, record_count)
        self.next_offset = last_offset + 1

    @cython.cfunc
    @cython.inline
    def _note(self, producer_id: cython.longlong, header: bytes) -> cython.bint:
        """Remembers a producer's batch; False if its epoch changes, or it is transactional and the last was not."""
        run: list[bytes] | None = self.producers.get(producer_id)
        if run is None:
            self.producers[producer_id] = [header]
            return True
        first: bytes = run[0]
        if first[51] != header[51] or first[52] != header[52] or (first[22] ^ header[22]) & _TRANSACTIONAL:
            return False
        run.append(header)
        if len(run) > _BATCHES_THAT_COUNT:
            del run[1]
        return True

    @cython.cfunc
    @cython.inline
    def _index(
        self,
        position: cython.longlong,
        size: cython.longlong,
        last_offset: cython.longlong,
        max_timestamp: cython.longlong,
        record_count: cython.longlong,
    ) -> cython.void:
        if position == 0:
            self.first_timestamp = max_timestamp
        # Compaction leaves empty batches that still have the timestamp of their former records.
        if record_count > 0 and (position == 0 or max_timestamp > self.max_timestamp):
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.unindexed_bytes > self.index_interval:
            _put(self.offset_entries, last_offset - self.base_offset, 4)
            _put(self.offset_entries, position, 4)
            if self.max_timestamp > self.indexed_timestamp:
                _put(self.time_entries, self.max_timestamp, 8)
                _put(self.time_entries, self.max_timestamp_offset - self.base_offset, 4)
                self.indexed_timestamp = self.max_timestamp
            self.unindexed_bytes = 0
        self.unindexed_bytes += size
