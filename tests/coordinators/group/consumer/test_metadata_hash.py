"""The group's metadata hash equals Apache Kafka's: the values are from Kafka's own code for the same topics."""

import pytest

from quire.coordinators.group.consumer.metadata_hash import TopicHashes, signed_hash, topic_hash
from quire.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage

ID = bytes.fromhex("0123456789abcdeffedcba9876543210")
OTHER_ID = b"\x11" * 8 + b"\x22" * 8
FOO, BAR = 4_231_092_367_357_902_416, 8_733_119_781_167_439_863

OF_THE_REFERENCE = [
    (0, 0x2D06800538D394C2),
    (1, 0xE12EF9D2EB86CEEB),
    (3, 0xA9088DDA485B481C),
    (4, 0x57648C318A7A307E),
    (8, 0xB0FB3E3C3F94990A),
    (9, 0x8ACA5CB309437C2E),
    (16, 0x2BD926D88792965A),
    (17, 0x621F018AAD19B14A),
    (32, 0x8911535E799E4D99),
    (33, 0xB6D8B523DB9B284C),
    (64, 0x1B1BF114C7371F1B),
    (96, 0xCFB21E0D09D8EF29),
    (97, 0xE1415CA7902A74DA),
    (128, 0xE9549AF9A74093E6),
    (129, 0xB54AD1CD8A4C84B9),
    (160, 0x898DF912F54AA5C2),
    (240, 0x3E136902EC966624),
    (241, 0xBD7D29B6BA966D6A),
    (256, 0xFF5A1CEFADE75BB9),
    (1024, 0xDC5ACF0B043C445B),
    (1025, 0xC856C953BBDBC807),
    (2048, 0x848D24CC268F7498),
    (4100, 0xBAA034688640D150),
]


@pytest.mark.parametrize(("size", "expected"), OF_THE_REFERENCE)
def test_the_hash_function_is_xxh3_with_the_values_of_its_reference_implementation(size: int, expected: int) -> None:
    content = bytes((7 * number + size) & 0xFF for number in range(size))
    assert signed_hash(content) & (1 << 64) - 1 == expected


@pytest.mark.parametrize(
    ("topic_id", "name", "racks", "kafka"),
    [
        (ID, "foo", [["rack1", "rack0"], ["rack2", "rack1"]], FOO),
        (OTHER_ID, "bar", [[]], BAR),
        (bytes(16), "empty", [], 728_769_691_835_767_132),
        (ID, "foo", [["r", "r"]], 2_883_780_561_648_472_600),
        (ID, "foo", [["\ue000", "\U0001f600"]], 4_767_223_826_197_171_634),
        (ID, "t\u00e9", [["\u00e9"]], 480_043_309_326_700_168),
    ],
)
def test_a_topics_hash_covers_its_id_name_partitions_and_racks(
    topic_id: bytes, name: str, racks: list[list[str]], kafka: int
) -> None:
    assert topic_hash(topic_id, name, racks) == kafka


def test_a_groups_hash_covers_its_topics_in_the_order_of_their_names() -> None:
    def little_endian(*numbers: int) -> bytes:
        return b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)

    assert signed_hash(little_endian(FOO)) == -3_651_539_661_068_893_492
    assert signed_hash(little_endian(BAR, FOO)) == -556_879_919_459_959_918
    assert TopicHashes().of_group(["foo", "bar"], image()) == -556_879_919_459_959_918
    assert TopicHashes().of_group(["bar", "foo"], image()) == -556_879_919_459_959_918


def test_topics_that_do_not_exist_count_for_nothing() -> None:
    assert TopicHashes().of_group(["foo", "not yet"], image()) == -3_651_539_661_068_893_492
    assert TopicHashes().of_group(["not yet"], image()) == 0
    assert TopicHashes().of_group([], image()) == 0


def test_a_changed_topic_is_noticed_once_the_hashes_of_before_are_forgotten() -> None:
    hashes, now = TopicHashes(), image()
    before = hashes.of_group(["bar"], now)
    now.topics_by_name["bar"].partitions[1] = PartitionImage((1,), (1,), 1)
    assert hashes.of_group(["bar"], now) == before
    hashes.forget()
    assert hashes.of_group(["bar"], now) != before


def image() -> ClusterImage:
    """The first two topics of the table above: foo on brokers in racks, bar on one without."""
    image = ClusterImage()
    for broker_id, rack in enumerate(["rack0", "rack1", "rack2", None]):
        image.brokers[broker_id] = BrokerImage(broker_id, 0, bytes(16), rack=rack)
    foo = {0: PartitionImage((1, 0), (1, 0), 1), 1: PartitionImage((2, 1), (2, 1), 2)}
    image.add_topic(TopicImage("foo", ID, foo))
    image.add_topic(TopicImage("bar", OTHER_ID, {0: PartitionImage((3,), (3,), 3)}))
    return image
