"""Random numbers that repeat: the simulated Random seam, and the random choices of the simulator itself.

Everything random in a run comes from one seed. Each concern has its own named stream, so that one more random number in
the network does not change the disk, and a failing seed stays comparable while code changes.
"""

import random
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


class SimRandom:
    """Implements `quire.seams.Random`; the methods after `stream` are for faults and workloads."""

    __slots__ = ("_random", "_seed")

    def __init__(self, seed: int | str) -> None:
        self._seed = str(seed)
        self._random = random.Random(int.from_bytes(blake2b(self._seed.encode(), digest_size=16).digest()))

    def random_bytes(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)

    def uuid(self) -> bytes:
        """As Kafka's: version 4, and never one whose text begins with '-', which tools would take for an option."""
        while True:
            raw = bytearray(self._random.randbytes(16))
            raw[6] = raw[6] & 0x0F | 0x40
            raw[8] = raw[8] & 0x3F | 0x80
            if raw[0] >> 2 != 62:
                return bytes(raw)

    def stream(self, name: str) -> "SimRandom":
        """An independent source that depends only on this one's seed and `name`, not on what was drawn before."""
        return SimRandom(f"{self._seed}/{name}")

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self._random.random()

    def choice(self, options: Sequence[T]) -> T:
        return options[self._random.randrange(len(options))]
