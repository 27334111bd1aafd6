"""AlterPartitionReassignments: partitions get other replicas, or a reassignment is cancelled (KIP-455).

The request only says where to go. The records say which replicas are added and removed, and every later change of the
partition completes the reassignment if it can (`reassignment.py`, `elections.change_partition`). So it goes on after
any crash, under whichever controller is active.
"""

from collections import Counter
from collections.abc import Sequence

from quire.config.broker_config import BrokerConfig
from quire.controller import elections
from quire.controller.assignments import check_replicas
from quire.controller.controller_result import Portions
from quire.controller.reassignment import Assignment, assignment_of, towards
from quire.metadata.image import ClusterImage, TopicImage
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from quire.protocol.messages.metadata_records import PartitionChangeRecord


def alter_partition_reassignments(
    image: ClusterImage, config: BrokerConfig, request: AlterPartitionReassignmentsRequest
) -> Portions[AlterPartitionReassignmentsResponse]:
    """Each partition is changed or refused on its own, and judged by the image as it is at its turn."""
    may_change_factor = request.allow_replication_factor_change
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor, error_message=None
    )
    times = Counter((topic.name, each.partition_index) for topic in request.topics for each in topic.partitions)
    for topic in request.topics:
        results = ReassignableTopicResponse(name=topic.name)
        response.responses.append(results)
        for wanted in topic.partitions:
            result = ReassignablePartitionResponse(partition_index=wanted.partition_index, error_message=None)
            results.partitions.append(result)
            try:
                if times[topic.name, wanted.partition_index] > 1:
                    raise ApiError(ErrorCode.INVALID_REQUEST, "the request names this partition more than once")
                change = _change(image, config, topic.name, wanted, may_change_factor=may_change_factor)
                yield [] if change is None else [change]
            except ApiError as error:
                result.error_code, result.error_message = error.code, error.message
    return response


def refuse(request: AlterPartitionReassignmentsRequest, error: ApiError) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)


def _change(
    image: ClusterImage, config: BrokerConfig, name: str, wanted: ReassignablePartition, *, may_change_factor: bool
) -> PartitionChangeRecord | None:
    topic = image.topic(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{name}' does not exist")
    index = wanted.partition_index
    if index not in topic.partitions:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{name}' has no partition {index}")
    if wanted.replicas is None:
        assignment = _cancelled(image, config, topic, index)
    else:
        assignment = _wanted(image, config, topic, index, wanted.replicas, may_change_factor=may_change_factor)
    return elections.reassigned(image, config, topic, index, assignment)


def _wanted(
    image: ClusterImage,
    config: BrokerConfig,
    topic: TopicImage,
    index: int,
    replicas: Sequence[int],
    *,
    may_change_factor: bool,
) -> Assignment:
    check_replicas(image, replicas)
    partition = topic.partitions[index]
    factor = len(assignment_of(partition).target)
    if len(replicas) != factor and not may_change_factor:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{topic.name}-{index} has a replication factor of {factor}, which the request does not allow to change, "
            f"and the assignment has {len(replicas)} {'replica' if len(replicas) == 1 else 'replicas'}",
        )
    return towards(partition, replicas, elections.holders_now(image, config, topic, index))


def _cancelled(image: ClusterImage, config: BrokerConfig, topic: TopicImage, index: int) -> Assignment:
    """The replicas from before. It is refused if too few of them have what was acknowledged meanwhile."""
    partition = topic.partitions[index]
    if not partition.is_reassigning:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{topic.name}-{index} is not being reassigned")
    assignment = assignment_of(partition)
    holders = elections.holders_now(image, config, topic, index)
    if not holders.may_lose(assignment.adding, assignment.original):
        in_sync = [each for each in partition.isr if each in assignment.original]
        rules = elections.rules_for(image, config, topic)
        may_lead = any(image.brokers[each].is_active for each in assignment.original if each in image.brokers)
        if not rules.unclean or not may_lead:
            needed = min(rules.min_insync_replicas, len(assignment.original))
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"without the replicas that are being added, {topic.name}-{index} has {len(in_sync)} in-sync replicas "
                f"and needs {needed}: acknowledged records might be lost; to go back when it is safe, reassign it to "
                f"{list(assignment.original)}",
            )
    return Assignment(assignment.original)
