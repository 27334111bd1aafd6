"""Records on their way into a response: copied where they are small, passed on as parts where they are not.

A fetch sends slices of files. They never enter Python's memory: an encoder that is given a list of parts ends the bytes
it is writing where a slice belongs, and goes on behind it with fresh ones.
"""

from typing import Final

from quire.seams import Buffer, FileSlice, Part

PART_BYTES: Final = 8192
"""Buffers of this size and more are not copied; below, a copy is cheaper than one more buffer for the socket."""


def records_size(records: Buffer | list[Part]) -> int:
    return sum(map(len, records)) if isinstance(records, list) else len(records)


def add_records(records: Buffer | list[Part], out: bytearray, parts: list[Part] | None) -> bytearray:
    """Adds records to a message and returns the buffer to go on with; without `parts`, file slices are read."""
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
