"""The metadata hash: a number that changes when a topic of the group changes, so that the group needs a new target.

It is exactly the number that Apache Kafka 4.1 and later stores in ConsumerGroupMetadataValue.MetadataHash. So a
coordinator of either kind that loads the group sees whether topics have changed. The hash of a topic covers its id, its
name, and the racks of the replicas of each partition. The hash of a group covers the hashes of its topics, ordered by
name. Integers are little-endian; strings are UTF-16, followed by their length. The hash function is XXH3-64.
"""

from collections.abc import Iterable
from struct import pack

from xxhash import xxh3_64_intdigest

from quire.metadata.image import ClusterImage, PartitionImage, TopicImage

_LAYOUT_VERSION = b"\x00"
NO_TOPICS = 0


class TopicHashes:
    """Caches the hashes of topics, because many groups may have the same topics."""

    __slots__ = ("_known", "_racks")

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._racks: dict[tuple[int, ...], bytes] = {}
        """The hashed bytes of the racks of these replicas. Many partitions have the same replicas."""

    def forget(self) -> None:
        """The metadata has changed."""
        self._known.clear()
        self._racks.clear()

    def of_group(self, topic_names: Iterable[str], image: ClusterImage) -> int:
        """Topics that do not exist are ignored."""
        existing = [name for name in topic_names if name in image.topics_by_name]
        # Topic names are ASCII, so sorting by code point is the same as Java's sorting by UTF-16.
        has_racks = any(broker.rack is not None for broker in image.brokers.values())
        hashes = [self._of_topic(image.topics_by_name[name], image, has_racks) for name in sorted(existing)]
        return signed_hash(pack(f"<{len(hashes)}q", *hashes)) if hashes else NO_TOPICS

    def _of_topic(self, topic: TopicImage, image: ClusterImage, has_racks: bool) -> int:
        known = self._known.get(topic.name)
        if known is None:
            count = len(topic.partitions)
            racks = (
                [self._racks_of(topic.partitions.get(number), image) for number in range(count)] if has_racks else []
            )
            known = self._known[topic.name] = _hash(topic.topic_id, topic.name, count, racks)
        return known

    def _racks_of(self, partition: PartitionImage | None, image: ClusterImage) -> bytes:
        replicas = () if partition is None else partition.replicas
        known = self._racks.get(replicas)
        if known is None:
            brokers = [image.brokers.get(replica) for replica in replicas]
            racks = [broker.rack for broker in brokers if broker is not None and broker.rack is not None]
            known = self._racks[replicas] = _rack_bytes(racks)
        return known


def topic_hash(topic_id: bytes, name: str, racks: list[list[str]]) -> int:
    """`racks` has the racks of the replicas of each partition, one entry per replica."""
    return _hash(topic_id, name, len(racks), [_rack_bytes(of_partition) for of_partition in racks])


def _hash(topic_id: bytes, name: str, count: int, racks: list[bytes]) -> int:
    """`racks` is empty if no partition has racks."""
    numbers = pack(f"<{count}i", *range(count))
    if any(racks):
        by_partition = b"".join([numbers[4 * number : 4 * number + 4] + racks[number] for number in range(count)])
    else:
        by_partition = numbers
    return signed_hash(
        _LAYOUT_VERSION + topic_id[7::-1] + topic_id[:7:-1] + _text(name) + pack("<i", count) + by_partition
    )


def _rack_bytes(racks: list[str]) -> bytes:
    return b"".join(pack("<i", len(_utf16(rack)) // 2) + _text(rack) for rack in sorted(racks, key=_utf16))


def signed_hash(content: bytes) -> int:
    unsigned = xxh3_64_intdigest(content)
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le")
    return encoded + pack("<i", len(encoded) // 2)


def _utf16(text: str) -> bytes:
    """The sort key of Java's strings."""
    return text.encode("utf-16-be")
