"""The machine's own share in a figure: memory touched beforehand, and what a bare pwrite gives at this moment."""

import os
import time
from pathlib import Path

CHUNK = b"x" * (1 << 20)


def touch_memory(size_bytes: int = 2 << 30) -> None:
    """Makes the host hand out guest memory now instead of in the middle of a measurement."""
    block = bytearray(size_bytes)
    for position in range(0, size_bytes, 4096):
        block[position] = 1


def bare_pwrite_megabytes_per_second(folder: Path, size_bytes: int = 512 << 20) -> float:
    """How fast one process appends to a file here, with nothing else to do: the control of every volume figure."""
    path = folder / "control"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        started = time.perf_counter()
        for position in range(0, size_bytes, len(CHUNK)):
            os.pwrite(descriptor, CHUNK, position)
        return size_bytes / (time.perf_counter() - started) / 1e6
    finally:
        os.close(descriptor)
        path.unlink()


def write_back() -> None:
    """Lets the disk catch up, so that one side's dirty pages are not paid for by the other."""
    os.sync()
