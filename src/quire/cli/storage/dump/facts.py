"""One fact about a file: a batch, a record, an entry. Readers of files yield facts, and printers show them.

Bytes stay bytes and times stay milliseconds; the printers format them.
"""

from typing import NamedTuple

PROBLEM = "problem"


class Fact(NamedTuple):
    kind: str
    fields: dict[str, object]


def problem(position: int | None, reason: str) -> Fact:
    """What is wrong with a file, and at which byte; None if the file as a whole is not valid."""
    return Fact(PROBLEM, {"position": position, "reason": reason.rstrip(".")})
