"""Finds the entries that a request names more than once. Kafka refuses them instead of serving each."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def named_twice(keys: Iterable[K]) -> frozenset[K]:
    seen: set[K] = set()
    twice: set[K] = set()
    for key in keys:
        if key in seen:
            twice.add(key)
        seen.add(key)
    return frozenset(twice)
