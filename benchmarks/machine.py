"""The influence of the machine on a figure: memory that the host has to provide first, and the speed of a bare pwrite.

On a virtual machine a page that the guest has not used for a while is not backed by memory: the first write to it takes
ten times as long, and counts as the broker's system time. So memory is warmed right before each measurement by writing
and removing a file, whose pages are then the next to be allocated.
"""

import os
import time
from pathlib import Path

CHUNK = b"x" * (1 << 20)
TRIES = 8
WARM_MEGABYTES_PER_SECOND = 2500
"""The speed of a bare pwrite with warm memory. With cold memory it is a few hundred."""


WARMED_BYTES = 2 << 30
"""More than a measurement uses: the log, the client's queue, and the buffers between them."""


def bare_pwrite_megabytes_per_second(folder: Path, size_bytes: int = WARMED_BYTES) -> float:
    """How fast one process appends to a file here: the control for every throughput figure."""
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


def warm_memory(folder: Path) -> float:
    """Writes until memory is warm, or does not get warmer; returns the control at the start of the measurement."""
    speed = 0.0
    for _ in range(TRIES):
        speed = bare_pwrite_megabytes_per_second(folder)
        if speed >= WARM_MEGABYTES_PER_SECOND:
            break
    return speed


def write_back() -> None:
    """Waits for the disk, so that the dirty pages of one side do not slow the other down."""
    os.sync()
