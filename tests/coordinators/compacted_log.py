"""A coordinator's log after compaction."""

from tests.coordinators.sim_shard import LogEntry


def compacted(log: list[LogEntry], share: float, *, keep_tombstones: bool) -> list[LogEntry]:
    """The first part of a log after compaction: the last committed record of each key, and no aborted records.

    It ends before the first record of an open transaction.
    """

    def end_of(position: int) -> LogEntry | None:
        producer = log[position].written_by
        ends = (entry for entry in log[position + 1 :] if entry.key is None and entry.written_by == producer)
        return next(ends, None)

    stop = int(len(log) * share)
    for position, entry in enumerate(log):
        if entry.key is not None and entry.written_by is not None and end_of(position) is None:
            stop = min(stop, position)
    last: dict[bytes, int] = {}
    kept: list[LogEntry] = []
    aborted = set()
    for position, entry in enumerate(log[:stop]):
        if entry.key is None:
            continue
        end = end_of(position) if entry.written_by is not None else None
        if end is not None and not end.committed:
            aborted.add(position)
        else:
            last[entry.key] = position
    for position, entry in enumerate(log[:stop]):
        counts = entry.key is None or (position not in aborted and last[entry.key] == position)
        if counts and (entry.key is None or entry.value is not None or keep_tombstones):
            kept.append(entry)
    return kept + log[stop:]
