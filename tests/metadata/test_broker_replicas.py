"""The index of a broker's partitions is the same whether it is updated by records or built from the image."""

from quire.metadata.delta import ImageDelta
from quire.metadata.image import ClusterImage
from quire.metadata.replay import replay
from quire.protocol.messages import metadata_records as records
from quire.protocol.schema import Message

ORDERS, PAYMENTS = b"o" * 16, b"p" * 16


def partition(topic_id: bytes, index: int, *replicas: int) -> Message:
    return records.PartitionRecord(
        partition_id=index, topic_id=topic_id, replicas=list(replicas), isr=list(replicas), leader=replicas[0]
    )


HISTORY: list[Message] = [
    records.TopicRecord(name="orders", topic_id=ORDERS),
    partition(ORDERS, 0, 1, 2),
    partition(ORDERS, 1, 2),
    records.TopicRecord(name="payments", topic_id=PAYMENTS),
    partition(PAYMENTS, 0, 1),
    records.PartitionChangeRecord(topic_id=ORDERS, partition_id=0, leader=2),
    records.PartitionChangeRecord(topic_id=ORDERS, partition_id=0, replicas=[2, 3]),
    records.RemoveTopicRecord(topic_id=PAYMENTS),
]


def on(image: ClusterImage, broker_id: int) -> list[tuple[str, int]]:
    return [(topic.name, index) for topic, index in image.replicas_on(broker_id)]


def test_it_follows_every_record() -> None:
    image = ClusterImage()
    assert on(image, 1) == []
    for record in HISTORY:
        replay(image, record, ImageDelta())
        built = image.copy()
        assert [sorted(on(image, each)) for each in (1, 2, 3)] == [sorted(on(built, each)) for each in (1, 2, 3)]
    assert (on(image, 1), on(image, 2), on(image, 3)) == ([], [("orders", 1), ("orders", 0)], [("orders", 0)])


def test_partitions_may_be_removed_during_the_iteration() -> None:
    image = ClusterImage()
    for record in HISTORY[:5]:
        replay(image, record, ImageDelta())
    found = image.replicas_on(1)
    assert next(found)[0].name == "orders"
    replay(image, HISTORY[-1], ImageDelta())
    assert list(found) == []


def test_brokers_are_listed_by_their_replicas() -> None:
    image = ClusterImage()
    for record in HISTORY:
        replay(image, record, ImageDelta())
    assert image.brokers_with_replicas() == [2, 3]
