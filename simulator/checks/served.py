"""Batches as they are served. Most are read by several clients, more than once, and each is decoded once."""

from functools import lru_cache

from quire.protocol.records import Record, check_crc, decode_batch, read_header

MOST = 4000
"""Batches of a few kilobytes."""


@lru_cache(maxsize=MOST)
def records_of(batch: bytes) -> tuple[Record, ...]:
    """The records of one whole batch; InvalidRecords if it is broken."""
    header = read_header(batch)
    check_crc(batch, header)
    return tuple(decode_batch(batch, header))
