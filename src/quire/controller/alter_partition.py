"""AlterPartition: the leader of a partition asks for another ISR (KIP-497).

The leader decides who is in sync, and the controller whether that may count: the answer is sent when the change is
committed, and only then may the leader count the smaller ISR. Leader epoch and partition epoch say which state the
leader has seen; a change of any other state is refused, so a leader that was replaced, or whose request arrives late,
changes nothing. A replica joins the ISR only with the broker epoch with which it fetched (KIP-903): after a restart
it may have lost what it had. Nor does it join if its directory has failed, or before its broker has reported its new
directory: that report says that the replica is new and empty, so it would leave the ISR again.
"""

from quire.config.broker_config import BrokerConfig
from quire.controller import elections
from quire.controller.controller_result import Portions
from quire.metadata.image import ClusterImage, PartitionImage, TopicImage
from quire.metadata.partition_image import NO_LEADER_CHANGE, RECOVERED, RECOVERING
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from quire.protocol.messages.metadata_records import PartitionChangeRecord

ANY_EPOCH = -1
"""The leader does not know with which registration the replica fetched."""

Members = dict[int, int]
"""The broker epoch of each member of the ISR."""


def alter_partition(
    image: ClusterImage, config: BrokerConfig, request: AlterPartitionRequest
) -> Portions[AlterPartitionResponse]:
    """Each partition is changed or refused on its own, and judged by the image as it is at its turn."""
    sender = image.brokers.get(request.broker_id)
    if sender is None or sender.epoch != request.broker_epoch:
        return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    response = AlterPartitionResponse()
    for wanted_topic in request.topics:
        results = AlterPartitionResponseTopicData(topic_id=wanted_topic.topic_id)
        response.topics.append(results)
        for wanted in wanted_topic.partitions:
            result = AlterPartitionResponsePartitionData(partition_index=wanted.partition_index)
            results.partitions.append(result)
            try:
                yield from _alter(image, config, request.broker_id, wanted_topic.topic_id, wanted, result)
            except ApiError as error:
                result.error_code = error.code
    return response


def _alter(
    image: ClusterImage,
    config: BrokerConfig,
    broker_id: int,
    topic_id: bytes,
    wanted: AlterPartitionRequestPartitionData,
    result: AlterPartitionResponsePartitionData,
) -> Portions[None]:
    topic, partition = _find(image, topic_id, wanted.partition_index)
    _check_epochs(partition, broker_id, wanted)
    members = _members(wanted)
    _check_isr(partition, wanted, members)
    try:
        _check_members(image, partition, members)
    except ApiError:
        if image.brokers[broker_id].is_active:
            # A delayed copy of this request may arrive when the member is eligible again. A new partition epoch makes
            # sure that it is refused then, so the leader need not wait for its result.
            yield [_without_change(topic_id, wanted.partition_index, partition)]
        raise
    # In another order it is the same ISR, and needs no record.
    isr = partition.isr if set(members) == set(partition.isr) else tuple(members)
    change = elections.isr_altered(image, config, topic, wanted.partition_index, isr, wanted.leader_recovery_state)
    if change is not None:
        yield [change]
        partition = partition.changed_by(change)
        if change.leader not in (broker_id, NO_LEADER_CHANGE):
            raise ApiError(ErrorCode.NEW_LEADER_ELECTED, f"broker {partition.leader} was elected")
    result.leader_id = partition.leader
    result.leader_epoch = partition.leader_epoch
    result.isr = list(partition.isr)
    result.leader_recovery_state = partition.leader_recovery_state
    result.partition_epoch = partition.partition_epoch


def _without_change(topic_id: bytes, index: int, partition: PartitionImage) -> PartitionChangeRecord:
    """Every record of a partition raises its epoch."""
    return PartitionChangeRecord(partition_id=index, topic_id=topic_id, isr=list(partition.isr))


def _find(image: ClusterImage, topic_id: bytes, index: int) -> tuple[TopicImage, PartitionImage]:
    topic = image.topic_by_id(topic_id)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
    partition = topic.partitions.get(index)
    if partition is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of {topic.name}")
    return topic, partition


def _check_epochs(partition: PartitionImage, broker_id: int, wanted: AlterPartitionRequestPartitionData) -> None:
    if wanted.leader_epoch > partition.leader_epoch or wanted.partition_epoch > partition.partition_epoch:
        # The sender has read more of the metadata log than this controller, so there must be a newer controller.
        raise ApiError(ErrorCode.NOT_CONTROLLER, "the leader knows a later epoch than this controller")
    if wanted.leader_epoch < partition.leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, f"the leader epoch is {partition.leader_epoch}")
    if broker_id != partition.leader:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"broker {partition.leader} leads, not {broker_id}")
    if wanted.partition_epoch < partition.partition_epoch:
        raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"the partition epoch is {partition.partition_epoch}")


def _members(wanted: AlterPartitionRequestPartitionData) -> Members:
    """In the order of the request. Version 2 has no broker epochs."""
    named = [(each.broker_id, each.broker_epoch) for each in wanted.new_isr_with_epochs]
    named += [(broker_id, ANY_EPOCH) for broker_id in wanted.new_isr]
    members = dict(named)
    if len(members) < len(named):
        raise ApiError(ErrorCode.INVALID_REQUEST, "the ISR names a broker twice")
    return members


def _check_isr(partition: PartitionImage, wanted: AlterPartitionRequestPartitionData, members: Members) -> None:
    unknown = [each for each in members if each not in partition.replicas]
    if unknown:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"the ISR has brokers that have no replica: {unknown}")
    if partition.leader not in members:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the ISR lacks the leader")
    state = wanted.leader_recovery_state
    if state not in (RECOVERED, RECOVERING):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no leader recovery state {state}")
    if state == RECOVERING and (len(members) > 1 or partition.leader_recovery_state == RECOVERED):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "only a leader that was elected unclean is recovering, and it is alone in the ISR",
        )


def _check_members(image: ClusterImage, partition: PartitionImage, members: Members) -> None:
    """A leader without its directory is not refused: another is elected."""
    for broker_id, epoch in members.items():
        broker = image.brokers.get(broker_id)
        if broker is None or not broker.is_active or epoch not in (ANY_EPOCH, broker.epoch):
            raise ApiError(
                ErrorCode.INELIGIBLE_REPLICA,
                f"broker {broker_id} is not registered, fenced, shutting down, or has registered again",
            )
        if broker_id != partition.leader and elections.lost_its_directory(image, partition, broker_id):
            raise ApiError(
                ErrorCode.INELIGIBLE_REPLICA,
                f"the directory of broker {broker_id} has failed, or its new one is not known yet",
            )
