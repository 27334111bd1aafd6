"""For tests of the checkers: the block must break one particular promise."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from simulator.violation import Violation


@contextmanager
def expect(promise: str) -> Iterator[None]:
    with pytest.raises(Violation) as broken:
        yield
    assert broken.value.promise == promise
