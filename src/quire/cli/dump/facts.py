"""One thing that a file says: a batch, a record, an entry. What reads a file yields these; what prints shows them.

Bytes stay bytes here, times stay milliseconds: how they are shown is decided where they are.
"""

from typing import NamedTuple

PROBLEM = "problem"


class Fact(NamedTuple):
    kind: str
    fields: dict[str, object]


def problem(position: int | None, reason: str) -> Fact:
    """What is wrong with a file, and the byte at which that shows; None where the file as a whole makes no sense."""
    return Fact(PROBLEM, {"position": position, "reason": reason.rstrip(".")})
