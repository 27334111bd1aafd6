"""One number for what a group's topics look like now: when it changes, the group needs a new target assignment.

It is the number Apache Kafka 4.1 and later stores in ConsumerGroupMetadataValue.MetadataHash, to the bit: a coordinator
of either kind that takes a group over sees whether topics changed in between. A topic's hash covers its id, its name,
and of each partition the racks of its replicas; a group's hash covers those of its topics in the order of their names.
Numbers are hashed in little-endian, text as UTF-16 with its length behind it.
"""

from collections.abc import Iterable
from struct import pack

from quire.coordinators.group.consumer.xxh3 import xxh3_64
from quire.metadata.image import ClusterImage, TopicImage

_LAYOUT_VERSION = b"\x00"
NO_TOPICS = 0


class TopicHashes:
    """The hashes of topics in the image at hand, each computed once however many groups ask for it."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def forget(self) -> None:
        """The image shows other topics than before."""
        self._known.clear()

    def of_group(self, topic_names: Iterable[str], image: ClusterImage) -> int:
        """Topics that do not exist count for nothing."""
        hashes = [
            self._of_topic(topic, image) for name in sorted(topic_names, key=_utf16) if (topic := image.topic(name))
        ]
        return signed_hash(pack(f"<{len(hashes)}q", *hashes)) if hashes else NO_TOPICS

    def _of_topic(self, topic: TopicImage, image: ClusterImage) -> int:
        known = self._known.get(topic.name)
        if known is None:
            racks = [_racks(topic, partition, image) for partition in range(len(topic.partitions))]
            known = self._known[topic.name] = topic_hash(topic.topic_id, topic.name, racks)
        return known


def topic_hash(topic_id: bytes, name: str, racks: list[list[str]]) -> int:
    """`racks` has an entry for each partition: the racks of its replicas, as often as there are replicas in them."""
    content = bytearray(_LAYOUT_VERSION)
    content += topic_id[7::-1] + topic_id[:7:-1]
    content += _text(name)
    content += pack("<i", len(racks))
    for partition, of_partition in enumerate(racks):
        content += pack("<i", partition)
        for rack in sorted(of_partition, key=_utf16):
            content += pack("<i", len(_utf16(rack)) // 2) + _text(rack)
    return signed_hash(bytes(content))


def signed_hash(content: bytes) -> int:
    unsigned = xxh3_64(content)
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def _racks(topic: TopicImage, partition: int, image: ClusterImage) -> list[str]:
    held = topic.partitions.get(partition)
    brokers = [image.brokers.get(replica) for replica in held.replicas] if held else []
    return [broker.rack for broker in brokers if broker is not None and broker.rack is not None]


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le")
    return encoded + pack("<i", len(encoded) // 2)


def _utf16(text: str) -> bytes:
    """Sorting by this is how Java sorts text."""
    return text.encode("utf-16-be")
