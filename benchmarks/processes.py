"""Figures of a process from the kernel: user and system CPU time, and resident memory."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Cpu:
    user_s: float
    system_s: float

    @property
    def total_s(self) -> float:
        return self.user_s + self.system_s

    def since(self, earlier: "Cpu") -> "Cpu":
        return Cpu(self.user_s - earlier.user_s, self.system_s - earlier.system_s)


def cpu(pid: int) -> Cpu:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return Cpu(int(fields[11]) / TICKS_PER_SECOND, int(fields[12]) / TICKS_PER_SECOND)


def cpu_of_ended_children_s(pid: int) -> float:
    """The times of ended child processes that were waited for, and of their children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / TICKS_PER_SECOND


def has_ended(pid: int) -> bool:
    """True also if its parent has not waited for it yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no resident memory")


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def descendants(pid: int) -> list[int]:
    """Everything below a process, whichever of its threads started it; those that have just ended are left out."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, listed.read_text().split()):
                found += [child, *descendants(child)]
    return found
