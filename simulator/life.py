"""Which life of which node something belongs to: each start of a node begins one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Life:
    node: str
    number: int
