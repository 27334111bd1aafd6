"""What single records change in the image and in the delta."""

from typing import Any

import pytest

from quire.metadata.delta import ImageDelta
from quire.metadata.features import UnsupportedMetadataError
from quire.metadata.image import ClusterImage, ConfigResource
from quire.metadata.partition_image import PartitionImage
from quire.metadata.replay import replay
from quire.protocol.messages import metadata_records as records
from quire.protocol.schema import Message

TOPIC_ID = b"t" * 16


def play(*history: Message) -> tuple[ClusterImage, ImageDelta]:
    image, delta = ClusterImage(), ImageDelta()
    for record in history:
        replay(image, record, delta)
    return image, delta


def topic(name: str = "orders", topic_id: bytes = TOPIC_ID) -> records.TopicRecord:
    return records.TopicRecord(name=name, topic_id=topic_id)


def partition(**fields: Any) -> records.PartitionRecord:
    given: dict[str, Any] = {
        "replicas": [1, 2],
        "isr": [1, 2],
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
    } | fields
    return records.PartitionRecord(partition_id=0, topic_id=TOPIC_ID, directories=[b"a" * 16, b"b" * 16], **given)


def test_a_topic_is_found_by_name_and_id() -> None:
    image, delta = play(topic(), partition())
    assert image.topic("orders") is image.topic_by_id(TOPIC_ID)
    assert image.partition(TOPIC_ID, 0) is not None
    assert list(delta.created_topics) == [TOPIC_ID]
    assert list(delta.partitions[TOPIC_ID]) == [0]


def test_removing_a_topic_takes_its_settings_along() -> None:
    image, delta = play(
        topic(),
        records.ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"),
        records.RemoveTopicRecord(topic_id=TOPIC_ID),
    )
    assert image == ClusterImage()
    assert list(delta.removed_topics) == [TOPIC_ID]
    assert not delta.created_topics and not delta.partitions
    assert list(delta.configs) == [ConfigResource(2, "orders")]


def test_a_new_leader_is_a_new_leader_epoch() -> None:
    image, _ = play(topic(), partition(), records.PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, leader=2))
    assert image.partition(TOPIC_ID, 0) == PartitionImage(
        replicas=(1, 2), isr=(1, 2), leader=2, leader_epoch=1, partition_epoch=1, directories=(b"a" * 16, b"b" * 16)
    )


def test_a_change_without_a_leader_keeps_the_leader_epoch() -> None:
    image, _ = play(topic(), partition(), records.PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=[1]))
    changed = image.partition(TOPIC_ID, 0)
    assert changed is not None
    assert (changed.isr, changed.leader_epoch, changed.partition_epoch) == ((1,), 0, 1)


def test_a_new_replica_has_no_directory_until_its_broker_says_so() -> None:
    change = records.PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, replicas=[2, 3])
    image, _ = play(topic(), partition(), change)
    changed = image.partition(TOPIC_ID, 0)
    assert changed is not None
    assert changed.directories == (b"b" * 16, bytes(16))


def test_names_that_differ_only_in_dots_and_underscores_collide() -> None:
    image, _ = play(topic("a.b"), topic("c", b"c" * 16))
    assert image.colliding_topic("a_b") == "a.b"
    assert image.colliding_topic("a.b") is None
    assert image.colliding_topic("c") is None


def test_a_setting_without_a_value_is_removed() -> None:
    resource = ConfigResource(4, "1")
    setting = records.ConfigRecord(resource_type=4, resource_name="1", name="log.cleaner.threads", value="2")
    image, _ = play(setting)
    assert image.configs == {resource: {"log.cleaner.threads": "2"}}
    image, delta = play(
        setting, records.ConfigRecord(resource_type=4, resource_name="1", name="log.cleaner.threads", value=None)
    )
    assert image.configs == {}
    assert list(delta.configs) == [resource]


def test_a_feature_at_level_0_is_off() -> None:
    level = records.FeatureLevelRecord
    image, _ = play(level(name="group.version", feature_level=1), level(name="group.version", feature_level=0))
    assert image.features == {}


@pytest.mark.parametrize(
    ("name", "level"), [("metadata.version", 31), ("metadata.version", 6), ("group.version", 2), ("new.version", 1)]
)
def test_an_unknown_feature_level_is_refused_by_name(name: str, level: int) -> None:
    with pytest.raises(UnsupportedMetadataError, match=rf"{name} at level {level}"):
        play(records.FeatureLevelRecord(name=name, feature_level=level))


def test_a_partition_of_an_unknown_topic_is_damage() -> None:
    with pytest.raises(UnsupportedMetadataError, match="damaged"):
        play(partition())


def test_a_change_of_an_earlier_incarnation_is_damage() -> None:
    with pytest.raises(UnsupportedMetadataError, match="broker 1 in epoch 7"):
        play(
            records.RegisterBrokerRecord(broker_id=1, broker_epoch=8),
            records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1),
        )


def test_a_broker_is_fenced_until_it_is_unfenced() -> None:
    register = records.RegisterBrokerRecord(broker_id=1, broker_epoch=8, fenced=True)
    change = records.BrokerRegistrationChangeRecord
    image, _ = play(register, change(broker_id=1, broker_epoch=8, fenced=-1))
    assert image.brokers[1].is_active
    image, _ = play(register, change(broker_id=1, broker_epoch=8, in_controlled_shutdown=1))
    assert image.brokers[1].fenced and image.brokers[1].in_controlled_shutdown


def test_eligible_leader_replicas_are_cleared_everywhere() -> None:
    image, _ = play(
        topic(), partition(eligible_leader_replicas=[2], last_known_elr=[1]), records.ClearElrRecord(topic_name="")
    )
    cleared = image.partition(TOPIC_ID, 0)
    assert cleared is not None
    assert (cleared.elr, cleared.last_known_elr) == ((), ())
