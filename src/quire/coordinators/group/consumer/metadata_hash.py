"""One number for what a group's topics look like now: when it changes, the group needs a new target assignment.

It is the number Apache Kafka 4.1 and later stores in ConsumerGroupMetadataValue.MetadataHash, to the bit: a coordinator
of either kind that takes a group over sees whether topics changed in between. A topic's hash covers its id, its name,
and of each partition the racks of its replicas; a group's hash covers those of its topics in the order of their names.
Numbers are hashed in little-endian, text as UTF-16 with its length behind it.
"""

from collections.abc import Iterable
from struct import pack

from quire.coordinators.group.consumer.xxh3_native import xxh3_64
from quire.metadata.image import ClusterImage, PartitionImage, TopicImage

_LAYOUT_VERSION = b"\x00"
NO_TOPICS = 0


class TopicHashes:
    """The hashes of topics in the image at hand, each computed once however many groups ask for it."""

    __slots__ = ("_known", "_racks")

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._racks: dict[tuple[int, ...], bytes] = {}
        """What the racks of these replicas add to a hash: many partitions have the same ones."""

    def forget(self) -> None:
        """The image shows other topics than before."""
        self._known.clear()
        self._racks.clear()

    def of_group(self, topic_names: Iterable[str], image: ClusterImage) -> int:
        """Topics that do not exist count for nothing."""
        existing = [name for name in topic_names if name in image.topics_by_name]
        # Names of topics are ASCII: in the order of UTF-16, which is Java's, and in that of code points alike.
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
    """`racks` has an entry for each partition: the racks of its replicas, as often as there are replicas in them."""
    return _hash(topic_id, name, len(racks), [_rack_bytes(of_partition) for of_partition in racks])


def _hash(topic_id: bytes, name: str, count: int, racks: list[bytes]) -> int:
    """`racks` is empty where no partition has any."""
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
    unsigned = xxh3_64(content)
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le")
    return encoded + pack("<i", len(encoded) // 2)


def _utf16(text: str) -> bytes:
    """Sorting by this is how Java sorts text."""
    return text.encode("utf-16-be")
