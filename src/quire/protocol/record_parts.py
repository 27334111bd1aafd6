"""Adds records to a response: small ones are copied, large ones become parts of their own.

A fetch sends file slices, which are never read into Python's memory: an encoder with a list of parts ends its current
buffer where a slice belongs, and continues after it with a new one.
"""

from typing import Final

from quire.seams import Buffer, FileSlice, Part

PART_BYTES: Final = 8192
"""Buffers of at least this size are not copied; below, a copy is cheaper than one more buffer for the socket."""


def records_size(records: Buffer | list[Part]) -> int:
    return sum(map(len, records)) if isinstance(records, list) else len(records)


def add_records(records: Buffer | list[Part], out: bytearray, parts: list[Part] | None) -> bytearray:
    """Adds records to a message and returns the buffer to continue with; without `parts`, file slices are read."""
    for part in records if isinstance(records, list) else (records,):
        if isinstance(part, FileSlice):
            if parts is None:
                out += part.read()
                continue
            if not part.size:
                continue
        elif parts is None or len(part) < PART_BYTES:
            out += part
            continue
        if out:
            parts.append(out)
            out = bytearray()
        parts.append(part)
    return out
