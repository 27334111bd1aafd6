"""Random numbers from the operating system: the Random seam.

`os` and `random` alone, because `secrets` would load OpenSSL when the command line starts.
"""

import os
import random


class RealRandom:
    def __init__(self) -> None:
        self._system = random.SystemRandom()

    def random_bytes(self, size: int) -> bytes:
        return os.urandom(size)

    def below(self, limit: int) -> int:
        return self._system.randrange(limit)

    def uuid(self) -> bytes:
        """A version-4 UUID (RFC 9562). Its version bits distinguish it from Kafka's reserved ids.

        As in Kafka, its text never starts with '-', which a command line would take for an option.
        """
        while True:
            number = int.from_bytes(os.urandom(16), "big")
            number = number & ~(0xF << 76) | 4 << 76
            number = number & ~(0b11 << 62) | 0b10 << 62
            if number >> 122 != _DASH:
                return number.to_bytes(16, "big")


_DASH = 62
"""The six bits that base64url writes as '-'."""
