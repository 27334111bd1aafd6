"""A plan as text: what changes, how much is copied, and how long that may take."""

from collections import defaultdict
from collections.abc import Sequence

from quire.client.placement.model import Change
from quire.console.output import count, format_table, numbers, title_of

TITLES = ("partition", "from", "to", "copied")
IS_TITLE = title_of(TITLES)
ASSUMED_BYTES_PER_S = 100_000_000
"""For an estimate without a throttle: what a disk or a network of a gigabit does."""

_SHOWN = 50
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def plan_view(changes: Sequence[Change], throttle: int | None) -> str:
    rows = [
        (
            each.before.name,
            numbers(each.before.replicas),
            numbers(each.replicas),
            size(each.copied_bytes) if each.adding else "-",
        )
        for each in changes[:_SHOWN]
    ]
    lines = [format_table(TITLES, rows)]
    if len(changes) > _SHOWN:
        lines.append(f"and {len(changes) - _SHOWN:,} more; --json shows all")
    return "\n".join([*lines, "", *summary(changes, throttle)])


def summary(changes: Sequence[Change], throttle: int | None) -> list[str]:
    copies = sum(len(each.adding) for each in changes)
    removals = sum(len(each.removing) for each in changes)
    leaders = sum(each.moves_leadership for each in changes)
    facts = [f"{count(copies, 'replica')} copied ({size(sum(each.copied_bytes for each in changes))})"]
    if removals:
        facts.append(f"{removals:,} removed")
    if leaders:
        facts.append(f"{count(leaders, 'preferred leader')} changed")
    lines = [f"{count(len(changes), 'partition')}: {', '.join(facts)}"]
    seconds = estimate_s(changes, throttle)
    if seconds:
        rate = f"{size(throttle or ASSUMED_BYTES_PER_S)}/s for each broker"
        lines.append(f"about {duration(seconds)} at {rate}")
    return lines


def estimate_s(changes: Sequence[Change], throttle: int | None) -> float:
    """The broker that receives most takes longest."""
    received: dict[int, int] = defaultdict(int)
    for each in changes:
        for broker in each.adding:
            received[broker] += each.before.size_bytes
    return max(received.values(), default=0) / (throttle or ASSUMED_BYTES_PER_S)


def size(size_bytes: float) -> str:
    unit = 0
    while size_bytes >= 1000 and unit < len(_UNITS) - 1:
        size_bytes /= 1000
        unit += 1
    return f"{size_bytes:.0f} {_UNITS[unit]}" if unit == 0 else f"{size_bytes:.3g} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    if seconds < 1:
        return "1 s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
