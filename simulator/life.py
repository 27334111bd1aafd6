"""Which life of the node something belongs to: each start begins one, and power losses divide them into eras."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Life:
    number: int
    era: int
