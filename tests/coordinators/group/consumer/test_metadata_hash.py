"""The group's metadata hash is Apache Kafka's: values that its own code gives for the same topics."""

import pytest

from quire.coordinators.group.consumer.metadata_hash import TopicHashes, signed_hash, topic_hash
from quire.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage

ID = bytes.fromhex("0123456789abcdeffedcba9876543210")
OTHER_ID = b"\x11" * 8 + b"\x22" * 8
FOO, BAR = 4_231_092_367_357_902_416, 8_733_119_781_167_439_863


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
