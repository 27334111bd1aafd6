"""Gives each broker about as many bytes as the others, without changing how evenly the replicas are spread.

A replica is exchanged for a smaller one of another broker, or moves to it if that broker has fewer replicas. Each step
moves less than the difference of the two, so no broker gets further from the mean than the furthest was.
"""

from quire.client.placement.candidates import Candidates, Entry
from quire.client.placement.layout import Layout

TOLERANCE = 0.1
"""The difference that is left between two brokers, as a part of the mean."""
_SMALLEST_STEP = 0.1
"""As a part of that difference: smaller steps copy much for little."""
_EXCHANGED_FOR = 8
_COMPARED = 3
"""Replicas that may be exchanged: the smallest of the one broker, and those of the best size of the other."""

Step = tuple[int, int | None]
"""A partition that moves to the target, and one that moves back."""


def even_disk_use(layout: Layout, candidates: Candidates) -> None:
    if not layout.targets:
        return
    mean = sum(layout.bytes[each] for each in layout.targets) / len(layout.targets)
    allowed = TOLERANCE * mean
    steps_left = sum(len(each) for each in layout.replicas)
    while steps_left and _step(layout, candidates, allowed):
        steps_left -= 1


def _step(layout: Layout, candidates: Candidates, allowed: float) -> bool:
    by_bytes = sorted(layout.targets, key=lambda each: (layout.bytes[each], each))
    for source in reversed(by_bytes):
        for target in by_bytes:
            difference = layout.bytes[source] - layout.bytes[target]
            if difference <= allowed:
                break
            found = _exchange(layout, candidates, source, target, difference)
            if found is None:
                continue
            number, back = found
            candidates.move(number, source, target)
            if back is not None:
                candidates.move(back, target, source)
            return True
    return False


def _exchange(layout: Layout, candidates: Candidates, source: int, target: int, difference: int) -> Step | None:
    """The exchange that leaves the smallest difference; of several, the one that copies least."""
    backwards: list[Entry | None] = list(candidates.smallest(target, source, _EXCHANGED_FOR))
    if layout.count(source) > layout.count(target):
        backwards.insert(0, None)
    best: tuple[tuple[float, int, int], Step] | None = None
    for back in backwards:
        back_size, back_number = (0, None) if back is None else back
        for size, number in candidates.near(source, target, difference / 2 + back_size, _COMPARED):
            moved = size - back_size
            if not difference * _SMALLEST_STEP <= moved < difference or number == back_number:
                continue
            additions = [(number, target)] + ([] if back_number is None else [(back_number, source)])
            if not layout.within_limits(*additions):
                continue
            rank = (abs(moved - difference / 2), size + back_size, number)
            if best is None or rank < best[0]:
                best = rank, (number, back_number)
    return None if best is None else best[1]
