"""The machine's own share in a figure: memory that has to be had from a host first, and what a bare pwrite gives.

On a virtual machine a page that the guest has not used for a while is not there: the first write to it takes ten times
as long, and counts as the broker's system time. So memory is warmed right before every single measurement, by writing
a file and removing it, whose pages are then the next to be handed out.
"""

import os
import time
from pathlib import Path

CHUNK = b"x" * (1 << 20)
TRIES = 8
WARM_MEGABYTES_PER_SECOND = 2500
"""What a bare pwrite gives where the memory is there. Cold, it is a few hundred."""


WARMED_BYTES = 2 << 30
"""More than a measurement uses: the log, what the client has queued for it, and what is between them."""


def bare_pwrite_megabytes_per_second(folder: Path, size_bytes: int = WARMED_BYTES) -> float:
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


def warm_memory(folder: Path) -> float:
    """Writes until memory is warm, or will not become so; the control, as it is when the measurement begins."""
    speed = 0.0
    for _ in range(TRIES):
        speed = bare_pwrite_megabytes_per_second(folder)
        if speed >= WARM_MEGABYTES_PER_SECOND:
            break
    return speed


def write_back() -> None:
    """Lets the disk catch up, so that one side's dirty pages are not paid for by the other."""
    os.sync()
