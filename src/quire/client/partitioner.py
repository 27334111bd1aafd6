"""Which partition a record goes to: by its key as in every Kafka client, or, without a key, one batch at a time."""

from quire.client.metadata import Topic
from quire.client.murmur2_native import murmur2
from quire.seams import Random


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Kafka's default: murmur2 with the sign bit cleared, modulo the number of partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class StickyPartitioner:
    """Sends records without a key to one partition until they fill a batch (KIP-480, KIP-794).

    Full batches cost less than a record for each partition in turn, and over time every partition gets its share.
    """

    __slots__ = ("_bytes", "_partition", "_random", "_switch_bytes")

    def __init__(self, random: Random, switch_bytes: int) -> None:
        self._random = random
        self._switch_bytes = switch_bytes
        self._partition = -1
        self._bytes = 0

    def choose(self, topic: Topic, size_bytes: int) -> int:
        """The partition for the next `size_bytes`: one that has a leader, if there is one."""
        if self._bytes >= self._switch_bytes or self._partition not in topic.partitions:
            available = topic.led or list(topic.partitions)
            others = [partition for partition in available if partition != self._partition] or available
            self._partition = others[self._random.below(len(others))]
            self._bytes = 0
        self._bytes += size_bytes
        return self._partition

    def used(self, size_bytes: int) -> None:
        """Counts bytes that were added to the partition chosen last."""
        self._bytes += size_bytes
