"""OffsetDelete: deletes single offsets of a group that no member uses."""

from quire.coordinators.group.group import Group, Groups, GroupType
from quire.coordinators.group.offsets.committed import offset_tombstone
from quire.coordinators.group.offsets.store import OffsetStore
from quire.coordinators.group.offsets.tombstones import TombstoneStep
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import CoordinatorResult
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

CONSUMER_PROTOCOL = "consumer"


def delete_offsets(
    store: OffsetStore, groups: Groups, image: ClusterImage, request: OffsetDeleteRequest
) -> CoordinatorResult[OffsetDeleteResponse]:
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "offsets are deleted from a group: give a group id")
    group = groups.get(request.group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {request.group_id}")
    _check_delete(group)
    records: list[StateRecord] = []
    topics = [_delete_of_topic(store, group, image, topic, records) for topic in request.topics]
    return CoordinatorResult(OffsetDeleteResponse(topics=topics), records)


def _check_delete(group: Group) -> None:
    """Consumers have known topics. Members of other protocol types may use any offset."""
    if group.type is GroupType.CLASSIC and not group.is_empty and group.protocol_type != CONSUMER_PROTOCOL:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"group {group.group_id} has members: stop them first")


def _delete_of_topic(
    store: OffsetStore,
    group: Group,
    image: ClusterImage,
    requested: OffsetDeleteRequestTopic,
    records: list[StateRecord],
) -> OffsetDeleteResponseTopic:
    topic = image.topic(requested.name)
    is_subscribed = group.is_subscribed_to(requested.name)
    partitions = []
    for partition in (each.partition_index for each in requested.partitions):
        error = ErrorCode.NONE
        if topic is None or partition not in topic.partitions:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif is_subscribed:
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        elif store.is_known(group.group_id, requested.name, partition):
            records.append(offset_tombstone(group.group_id, requested.name, partition))
        partitions.append(OffsetDeleteResponsePartition(partition_index=partition, error_code=error))
    return OffsetDeleteResponseTopic(name=requested.name, partitions=partitions)


def delete_all_step(store: OffsetStore, group_id: str, log_takes_bytes: int) -> TombstoneStep:
    """The next step of the deletion of all offsets, including pending ones of open transactions."""
    step = TombstoneStep(log_takes_bytes)
    for topic, partition in store.partitions_of(group_id):
        step.add(group_id, topic, partition)
        if step.is_full:
            break
    return step
