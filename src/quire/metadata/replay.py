"""How each record of the metadata log changes the image.

One function per record type, found in a table by the record's class. A committed record can no longer be refused: it
changes the image, or raises UnsupportedMetadataError.
"""

from collections.abc import Callable
from typing import Any

from quire.metadata.delta import ImageDelta
from quire.metadata.features import UnsupportedMetadataError, check_supported
from quire.metadata.image import TOPIC, ClusterImage, ConfigResource, TopicImage
from quire.metadata.node_images import BrokerImage, ControllerImage
from quire.metadata.partition_image import PartitionImage
from quire.protocol import uuids
from quire.protocol.messages import metadata_records as records
from quire.protocol.schema import Message


def replay(image: ClusterImage, record: Message, delta: ImageDelta) -> None:
    """Applies one record. The loader handles transaction records; here they change nothing."""
    change = _CHANGES.get(type(record))
    if change is None:
        raise UnsupportedMetadataError(
            f"the metadata log holds a {type(record).__name__}, which this node cannot replay"
        )
    change(image, record, delta)


def _topic(image: ClusterImage, topic_id: bytes, record: Message) -> TopicImage:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise UnsupportedMetadataError(
            f"the metadata log is damaged: a {type(record).__name__} names topic {uuids.to_text(topic_id)}, "
            "which no record created; restore the metadata directory from another node or a backup"
        )
    return topic


def _broker(image: ClusterImage, broker_id: int, epoch: int, record: Message) -> BrokerImage:
    broker = image.brokers.get(broker_id)
    if broker is None or broker.epoch != epoch:
        raise UnsupportedMetadataError(
            f"the metadata log is damaged: a {type(record).__name__} names broker {broker_id} in epoch {epoch}, "
            "which did not register; restore the metadata directory from another node or a backup"
        )
    return broker


def _register_broker(image: ClusterImage, record: records.RegisterBrokerRecord, delta: ImageDelta) -> None:
    image.brokers[record.broker_id] = BrokerImage.from_record(record)
    delta.brokers[record.broker_id] = None


def _unregister_broker(image: ClusterImage, record: records.UnregisterBrokerRecord, delta: ImageDelta) -> None:
    _broker(image, record.broker_id, record.broker_epoch, record)
    del image.brokers[record.broker_id]
    delta.brokers[record.broker_id] = None


def _change_broker(image: ClusterImage, record: records.BrokerRegistrationChangeRecord, delta: ImageDelta) -> None:
    broker = _broker(image, record.broker_id, record.broker_epoch, record)
    image.brokers[record.broker_id] = broker.changed_by(record)
    delta.brokers[record.broker_id] = None


def _fence_broker(image: ClusterImage, record: records.FenceBrokerRecord, delta: ImageDelta) -> None:
    image.brokers[record.id] = _broker(image, record.id, record.epoch, record).with_fencing(True)
    delta.brokers[record.id] = None


def _unfence_broker(image: ClusterImage, record: records.UnfenceBrokerRecord, delta: ImageDelta) -> None:
    image.brokers[record.id] = _broker(image, record.id, record.epoch, record).with_fencing(False)
    delta.brokers[record.id] = None


def _register_controller(image: ClusterImage, record: records.RegisterControllerRecord, delta: ImageDelta) -> None:
    image.controllers[record.controller_id] = ControllerImage.from_record(record)
    delta.controllers[record.controller_id] = None


def _create_topic(image: ClusterImage, record: records.TopicRecord, delta: ImageDelta) -> None:
    image.add_topic(TopicImage(record.name, record.topic_id))
    delta.created_topics[record.topic_id] = None


def _remove_topic(image: ClusterImage, record: records.RemoveTopicRecord, delta: ImageDelta) -> None:
    topic = _topic(image, record.topic_id, record)
    image.remove_topic(topic)
    delta.topic_removed(topic, ConfigResource(TOPIC, topic.name))


def _create_partition(image: ClusterImage, record: records.PartitionRecord, delta: ImageDelta) -> None:
    topic = _topic(image, record.topic_id, record)
    image.set_partition(topic, record.partition_id, PartitionImage.from_record(record))
    delta.partition_changed(record.topic_id, record.partition_id)


def _change_partition(image: ClusterImage, record: records.PartitionChangeRecord, delta: ImageDelta) -> None:
    topic = _topic(image, record.topic_id, record)
    partition = topic.partitions.get(record.partition_id)
    if partition is None:
        raise UnsupportedMetadataError(
            f"the metadata log is damaged: partition {record.partition_id} of {topic.name} changes before it exists; "
            "restore the metadata directory from another node or a backup"
        )
    image.set_partition(topic, record.partition_id, partition.changed_by(record))
    delta.partition_changed(record.topic_id, record.partition_id)


def _clear_elr(image: ClusterImage, record: records.ClearElrRecord, delta: ImageDelta) -> None:
    """Clears the ELR of one topic, or of all if none is named."""
    topics = [image.topics_by_name[record.topic_name]] if record.topic_name else list(image.topics_by_name.values())
    for topic in topics:
        for index, partition in topic.partitions.items():
            if partition.elr or partition.last_known_elr:
                image.set_partition(topic, index, partition.without_elr())
                delta.partition_changed(topic.topic_id, index)


def _change_config(image: ClusterImage, record: records.ConfigRecord, delta: ImageDelta) -> None:
    resource = ConfigResource(record.resource_type, record.resource_name)
    settings = image.configs.setdefault(resource, {})
    if record.value is None:
        settings.pop(record.name, None)
    else:
        settings[record.name] = record.value
    if not settings:
        del image.configs[resource]
    delta.configs[resource] = None


def _change_feature(image: ClusterImage, record: records.FeatureLevelRecord, delta: ImageDelta) -> None:
    check_supported(record.name, record.feature_level)
    if record.feature_level == 0:
        image.features.pop(record.name, None)
    else:
        image.features[record.name] = record.feature_level
    delta.features[record.name] = None


def _allocate_producer_ids(image: ClusterImage, record: records.ProducerIdsRecord, delta: ImageDelta) -> None:
    image.next_producer_id = record.next_producer_id
    delta.producer_ids = True


def _change_quota(image: ClusterImage, record: records.ClientQuotaRecord, delta: ImageDelta) -> None:
    entity = tuple(sorted(((each.entity_type, each.entity_name) for each in record.entity), key=lambda pair: pair[0]))
    limits = image.quotas.setdefault(entity, {})
    if record.remove:
        limits.pop(record.key, None)
    else:
        limits[record.key] = record.value
    if not limits:
        del image.quotas[entity]
    delta.security = True


def _add_acl(image: ClusterImage, record: records.AccessControlEntryRecord, delta: ImageDelta) -> None:
    image.acls[record.id] = record
    delta.security = True


def _remove_acl(image: ClusterImage, record: records.RemoveAccessControlEntryRecord, delta: ImageDelta) -> None:
    image.acls.pop(record.id, None)
    delta.security = True


def _set_scram(image: ClusterImage, record: records.UserScramCredentialRecord, delta: ImageDelta) -> None:
    image.scram_credentials[record.name, record.mechanism] = record
    delta.security = True


def _remove_scram(image: ClusterImage, record: records.RemoveUserScramCredentialRecord, delta: ImageDelta) -> None:
    image.scram_credentials.pop((record.name, record.mechanism), None)
    delta.security = True


def _set_token(image: ClusterImage, record: records.DelegationTokenRecord, delta: ImageDelta) -> None:
    image.delegation_tokens[record.token_id] = record
    delta.security = True


def _remove_token(image: ClusterImage, record: records.RemoveDelegationTokenRecord, delta: ImageDelta) -> None:
    image.delegation_tokens.pop(record.token_id, None)
    delta.security = True


def _nothing(image: ClusterImage, record: Message, delta: ImageDelta) -> None:
    """The record is for the readers of the log and does not change the cluster."""


_CHANGES: dict[type[Message], Callable[[ClusterImage, Any, ImageDelta], None]] = {
    records.RegisterBrokerRecord: _register_broker,
    records.UnregisterBrokerRecord: _unregister_broker,
    records.BrokerRegistrationChangeRecord: _change_broker,
    records.FenceBrokerRecord: _fence_broker,
    records.UnfenceBrokerRecord: _unfence_broker,
    records.RegisterControllerRecord: _register_controller,
    records.TopicRecord: _create_topic,
    records.RemoveTopicRecord: _remove_topic,
    records.PartitionRecord: _create_partition,
    records.PartitionChangeRecord: _change_partition,
    records.ClearElrRecord: _clear_elr,
    records.ConfigRecord: _change_config,
    records.FeatureLevelRecord: _change_feature,
    records.ProducerIdsRecord: _allocate_producer_ids,
    records.ClientQuotaRecord: _change_quota,
    records.AccessControlEntryRecord: _add_acl,
    records.RemoveAccessControlEntryRecord: _remove_acl,
    records.UserScramCredentialRecord: _set_scram,
    records.RemoveUserScramCredentialRecord: _remove_scram,
    records.DelegationTokenRecord: _set_token,
    records.RemoveDelegationTokenRecord: _remove_token,
    records.NoOpRecord: _nothing,
    records.ZkMigrationStateRecord: _nothing,
    records.BeginTransactionRecord: _nothing,
    records.EndTransactionRecord: _nothing,
    records.AbortTransactionRecord: _nothing,
}
