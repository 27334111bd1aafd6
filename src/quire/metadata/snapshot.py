"""An image as the records that create it: the content of a snapshot of the metadata log.

`replay` of `records_of(image)` gives an equal image. The order is Kafka's: features, nodes, topics each with its
partitions, settings, and the rest, each sorted, so that equal images have equal snapshots.
"""

from collections.abc import Iterable, Iterator

from quire.metadata.delta import ImageDelta
from quire.metadata.features import METADATA_VERSION, record_version
from quire.metadata.image import ClusterImage
from quire.metadata.replay import replay
from quire.protocol.messages.metadata_records import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from quire.protocol.schema import Message


def records_of(image: ClusterImage) -> Iterator[Message]:
    level = image.metadata_version
    # Kafka reads metadata.version before anything whose version depends on it.
    for name in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
    broker_version = record_version(RegisterBrokerRecord(), level)
    for broker in image.brokers_sorted():
        yield broker.to_record(broker_version)
    for controller_id in sorted(image.controllers):
        yield image.controllers[controller_id].to_record()
    yield from _topics(image, record_version(PartitionRecord(), level))
    for resource in sorted(image.configs):
        for name, value in sorted(image.configs[resource].items()):
            yield ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
    yield from _quotas(image)
    if image.next_producer_id:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from (image.acls[id_] for id_ in sorted(image.acls))
    yield from (image.scram_credentials[key] for key in sorted(image.scram_credentials))
    yield from (image.delegation_tokens[id_] for id_ in sorted(image.delegation_tokens))


def _topics(image: ClusterImage, partition_version: int) -> Iterator[Message]:
    for topic in image.topics_sorted():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for index, partition in sorted(topic.partitions.items()):
            yield partition.to_record(topic.topic_id, index, partition_version)


def _quotas(image: ClusterImage) -> Iterator[Message]:
    def order(entity: tuple[tuple[str, str | None], ...]) -> list[tuple[str, bool, str]]:
        return [(type_, name is not None, name or "") for type_, name in entity]

    for entity in sorted(image.quotas, key=order):
        for key, value in sorted(image.quotas[entity].items()):
            data = [EntityData(entity_type=type_, entity_name=name) for type_, name in entity]
            yield ClientQuotaRecord(entity=data, key=key, value=value, remove=False)


def image_of(records: Iterable[Message], offset: int = -1, epoch: int = -1, timestamp_ms: int = -1) -> ClusterImage:
    """The image that a snapshot's records create."""
    image = ClusterImage(offset, epoch, timestamp_ms)
    delta = ImageDelta()
    for record in records:
        replay(image, record, delta)
    return image
