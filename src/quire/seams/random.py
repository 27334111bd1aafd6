"""Random numbers: they differ between nodes and runs, and repeat in the simulator."""

from typing import Protocol


class Random(Protocol):
    def random_bytes(self, size: int) -> bytes: ...

    def below(self, limit: int) -> int:
        """A number from 0 up to, not including, `limit`."""
        ...

    def uuid(self) -> bytes:
        """Sixteen random bytes, as a version-4 UUID; never one of Kafka's reserved ids."""
        ...
