"""`python -m benchmarks.lookups`: what finding an offset or a point in time costs as a log grows to a million batches.

Goal: logarithmic growth. One log in one process, no network: each row has ten times as many batches as the row before,
and looks up random offsets and timestamps in all of them.
"""

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from quire.protocol.records import Record, build_batch, walk_batches
from quire.real.disk import RealDisk
from quire.storage import Log, LogConfig

SIZES = (1_000, 10_000, 100_000, 1_000_000)
AT_ONCE = 1_000
"""Batches per write: the log takes several at once, and it is reading that is measured."""
QUESTIONS = 2_000
START_MS = 1_700_000_000_000


def grow(log: Log, batches: int) -> None:
    """Appends until there are this many batches, each with one record, a millisecond after the one before."""
    while log.end_offset < batches:
        records = bytearray()
        for offset in range(log.end_offset, log.end_offset + AT_ONCE):
            records += build_batch([Record(0, START_MS + offset, None, b"x" * 20)])
        log.append(records, walk_batches(records), 0, START_MS)


def us_each(question: Callable[[int], object], batches: int) -> float:
    """The median of single lookups, in microseconds, after as many to warm up."""
    dice = random.Random(1)
    samples = []
    for _ in range(2 * QUESTIONS):
        wanted = dice.randrange(batches)
        started = time.perf_counter()
        question(wanted)
        samples.append((time.perf_counter() - started) * 1e6)
    return median(samples[QUESTIONS:])


def main() -> None:
    print("| batches | segments | by offset, us | by time, us |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="quire-lookups-") as name:
        folder = str(Path(name) / "orders-0")
        Path(folder).mkdir()
        log = Log.open(RealDisk(), folder, LogConfig(segment_bytes=8 << 20), clean=False, now_ms=START_MS)
        for batches in SIZES:
            grow(log, batches)
            by_offset = us_each(lambda offset: log.read(offset, 1 << 20), batches)
            by_time = us_each(lambda after_ms: log.find_timestamp(START_MS + after_ms), batches)
            print(f"| {batches:,} | {len(log.segments)} | {by_offset:.1f} | {by_time:.1f} |", flush=True)
        log.close()


if __name__ == "__main__":
    main()
