"""The partition of an internal topic that has a group or a transactional id, by Kafka's hash of the name."""

from functools import lru_cache


def java_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 code units, as a signed 32-bit integer."""
    number = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        number = (31 * number + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return number - (1 << 32) if number & 0x80000000 else number


@lru_cache(maxsize=1000)  # Each request looks up its name several times.
def partition_for(name: str, partition_count: int) -> int:
    number = java_hash(name)
    return (0 if number == -(1 << 31) else abs(number)) % partition_count
