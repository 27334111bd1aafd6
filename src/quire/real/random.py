"""Chance from the operating system."""

import secrets


class RealRandom:
    def random_bytes(self, size: int) -> bytes:
        return secrets.token_bytes(size)

    def below(self, limit: int) -> int:
        return secrets.randbelow(limit)

    def uuid(self) -> bytes:
        """A version-4 UUID (RFC 9562). Its version bits alone keep it apart from Kafka's reserved ids.

        Kafka also never makes an id whose text starts with '-', which a shell would take for an option.
        """
        while True:
            number = secrets.randbits(128)
            number = number & ~(0xF << 76) | 4 << 76
            number = number & ~(0b11 << 62) | 0b10 << 62
            if number >> 122 != _DASH:
                return number.to_bytes(16, "big")


_DASH = 62
"""The six bits that base64url writes as '-'."""
