"""Which adjacent segments are cleaned into one.

Compaction shrinks segments, and many small segments cost files and lookups. Adjacent segments are grouped as long as
their present contents, log and indexes, fit into one segment and its 32-bit relative offsets reach the last record.
"""

from collections.abc import Sequence
from typing import NamedTuple

from quire.storage.indexes.offset_index import MAX_RELATIVE_OFFSET


class Source(NamedTuple):
    """The sizes and offsets of a segment to be cleaned."""

    base_offset: int
    end_offset: int
    """Where the next segment begins."""
    size: int
    offset_index_bytes: int
    time_index_bytes: int


def group(sources: Sequence[Source], segment_bytes: int, index_bytes: int) -> list[list[Source]]:
    groups: list[list[Source]] = []
    for source in sources:
        if groups and _fits(groups[-1], source, segment_bytes, index_bytes):
            groups[-1].append(source)
        else:
            groups.append([source])
    return groups


def _fits(members: list[Source], source: Source, segment_bytes: int, index_bytes: int) -> bool:
    return (
        sum(member.size for member in members) + source.size <= segment_bytes
        and sum(member.offset_index_bytes for member in members) + source.offset_index_bytes <= index_bytes
        and sum(member.time_index_bytes for member in members) + source.time_index_bytes <= index_bytes
        and (source.size == 0 or source.end_offset - 1 - members[0].base_offset <= MAX_RELATIVE_OFFSET)
    )
