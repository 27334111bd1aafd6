"""A wrong time of day for one process: `clock.c` is preloaded into it."""

from pathlib import Path

from tests.crash.preloaded import preloaded

_LIBRARY = Path(__file__).parent / "clock.c"


def wrong_clock(shift_s: int) -> dict[str, str]:
    """The environment of a process whose clock is ahead by this much, or behind if negative."""
    return {"LD_PRELOAD": str(preloaded(_LIBRARY)), "WRONG_CLOCK_S": str(shift_s)}
