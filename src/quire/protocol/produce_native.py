# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found"
"""Decodes the usual Produce request in one call: since version 9, one topic, one partition, no tags.

Cython compiles the module if there is a C compiler at installation; interpreted it gives the same results. The code
checks bounds itself, because the compiled code does not. `fast_produce` calls it, and uses the compiled codec for all
other requests.
"""

from __future__ import annotations

import cython

from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if cython.compiled:
    from cython.cimports.quire.protocol.records.wire_numbers import int32
else:
    from quire.protocol.records.wire_numbers import int32

COMPILED: bool = cython.compiled

_NO_ID: bytes = bytes(16)

# transactional id (null), acks, timeout, number of topics (one)
_BEFORE_TOPIC = cython.declare(cython.Py_ssize_t, 8)
# number of partitions (one), partition
_BEFORE_RECORDS = cython.declare(cython.Py_ssize_t, 5)
# the tagged fields of partition, topic and request (none)
_BEHIND_RECORDS = cython.declare(cython.Py_ssize_t, 3)


def read_usual(
    view: memoryview, position: cython.Py_ssize_t, by_name: cython.bint
) -> tuple[ProduceRequest, int] | None:
    """The request at `position` and the position after it; None if it does not have the usual shape or is malformed.

    `by_name` is for versions with topic names; later versions have topic ids.
    """
    data: cython.const[cython.uchar][::1] = view
    end: cython.Py_ssize_t = len(data)
    at: cython.Py_ssize_t = position + _BEFORE_TOPIC
    start: cython.Py_ssize_t
    size: cython.longlong
    shift: cython.int
    byte: cython.int
    if at >= end or data[position] != 0 or data[position + 7] != 2:
        return None
    name: str = ""
    topic_id: bytes = _NO_ID
    if by_name:
        size = data[at]
        start = at + 1
        at += size
        if size == 0 or size > 127 or at + _BEFORE_RECORDS >= end:
            return None
        try:
            name = str(view[start:at], "utf-8")
        except UnicodeDecodeError:
            return None
    else:
        start = at
        at += 16
        if at + _BEFORE_RECORDS >= end:
            return None
        topic_id = bytes(view[start:at])
    if data[at] != 2:
        return None
    acks: cython.int = data[position + 1] << 8 | data[position + 2]
    timeout_ms: cython.longlong = int32(data, position + 3)
    index: cython.longlong = int32(data, at + 1)
    at += _BEFORE_RECORDS
    size = 0
    shift = 0
    while True:
        if at >= end or shift > 28:
            return None
        byte = data[at]
        at += 1
        size |= cython.cast(cython.longlong, byte & 0x7F) << shift
        shift += 7
        if byte < 128:
            break
    size -= 1
    if size < 0 or size > end - at - _BEHIND_RECORDS:
        return None
    start = at
    at += size
    if data[at] != 0 or data[at + 1] != 0 or data[at + 2] != 0:
        return None
    partition: PartitionProduceData = PartitionProduceData.__new__(PartitionProduceData)
    partition.index = index
    partition.records = view[start:at]
    partition.unknown_tags = None
    topic: TopicProduceData = TopicProduceData.__new__(TopicProduceData)
    topic.name = name
    topic.topic_id = topic_id
    topic.partition_data = [partition]
    topic.unknown_tags = None
    request: ProduceRequest = ProduceRequest.__new__(ProduceRequest)
    request.transactional_id = None
    request.acks = acks if acks < 32768 else acks - 65536
    request.timeout_ms = timeout_ms
    request.topic_data = [topic]
    request.unknown_tags = None
    return request, at + _BEHIND_RECORDS
