"""`python -m benchmarks.recovery`: how fast a log that was not closed is read and checked, from the page cache.

Goal: at least 1 GB/s. One log of one segment for each kind of batch, opened as after a crash with recovery point 0:
every checksum is compared, and indexes and producer state are rebuilt.
"""

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import warm_memory
from quire.protocol.records.batch import patch, read_header
from quire.protocol.records.builder import build_batch
from quire.protocol.records.record import Record
from quire.real.disk import RealDisk
from quire.storage.log import Log
from quire.storage.log_config import LogConfig

LOG_BYTES = 1_000_000_000
TRIES = 3
PRODUCERS = 8


def write_log(folder: Path, batch_bytes: int, idempotent: bool, log_bytes: int) -> int:
    """Fills one segment with batches of ten records (or as many as fit); returns how many batches there are."""
    count = min(10, batch_bytes // 200)
    values = [bytes((batch_bytes - 100) // count)] * count
    kinds = [
        build_batch(
            [Record(0, 1_700_000_000_000, None, value) for value in values],
            producer_id=producer if idempotent else -1,
            producer_epoch=0 if idempotent else -1,
            base_sequence=0 if idempotent else -1,
        )
        for producer in range(PRODUCERS)
    ]
    header = read_header(kinds[0])
    written = batches = 0
    with (folder / f"{0:020d}.log").open("wb") as file:
        while written < log_bytes:
            chunk = bytearray()
            while len(chunk) < 1 << 20:
                data = kinds[batches % PRODUCERS]
                patch(data, 0, batches * header.record_count, 0)
                chunk += data
                batches += 1
            file.write(chunk)
            written += len(chunk)
    return batches


def recovery_seconds(folder: Path, batches: int) -> float:
    config = LogConfig(segment_bytes=2_000_000_000)
    started = time.perf_counter()
    log = Log.open(RealDisk(), str(folder), config, clean=False, now_ms=0)
    took_s = time.perf_counter() - started
    log.close_files()
    assert log.end_offset % batches == 0, "not all of it was recovered"
    return took_s


def main(log_bytes: int = LOG_BYTES) -> None:
    print("| batches of | producer | MB/s | us per batch |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="quire-recovery-") as name:
        warm_memory(Path(name))
        for batch_bytes in (16_000, 1_000):
            for idempotent in (False, True):
                folder = Path(name) / f"{batch_bytes}-{idempotent}"
                folder.mkdir()
                batches = write_log(folder, batch_bytes, idempotent, log_bytes)
                size = (folder / f"{0:020d}.log").stat().st_size
                took_s = min(recovery_seconds(folder, batches) for _ in range(TRIES))
                kind = "idempotent" if idempotent else "plain"
                print(
                    f"| {batch_bytes} B | {kind} | {size / took_s / 1e6:.0f} | {took_s * 1e6 / batches:.2f} |",
                    flush=True,
                )
                for file in folder.iterdir():
                    file.unlink()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
