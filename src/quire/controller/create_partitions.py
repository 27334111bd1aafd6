"""CreatePartitions: a topic gets more partitions, placed or assigned by hand."""

from collections import Counter

from quire.controller.assignments import check_assignment, new_partition
from quire.controller.controller_result import Portions, check_record_count
from quire.controller.reassignment import assignment_of
from quire.controller.replica_placement import place_replicas
from quire.metadata.image import ClusterImage, TopicImage
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import is_internal
from quire.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from quire.protocol.schema import Message
from quire.seams import Random


def create_partitions(
    image: ClusterImage, random: Random, request: CreatePartitionsRequest
) -> Portions[CreatePartitionsResponse]:
    response = CreatePartitionsResponse()
    count = 0
    times = Counter(topic.name for topic in request.topics)
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if times[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")
            records = _add(image, random, topic)
            check_record_count(count + len(records))
            if request.validate_only:
                records = []
            yield records
        except ApiError as error:
            response.results.append(refused(topic, error))
            continue
        response.results.append(CreatePartitionsTopicResult(name=topic.name))
        count += len(records)
    return response


def refuse(request: CreatePartitionsRequest, error: ApiError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=[refused(topic, error) for topic in request.topics])


def refused(topic: CreatePartitionsTopic, error: ApiError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message)


def _add(image: ClusterImage, random: Random, wanted: CreatePartitionsTopic) -> list[Message]:
    topic = image.topic(wanted.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{wanted.name}' does not exist")
    if is_internal(wanted.name):
        # A coordinator is found by a hash modulo the number of partitions: with another number, committed offsets would
        # seem lost and open transactions would have no coordinator. (Kafka allows it; only its command line refuses.)
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"coordinators keep their state in '{wanted.name}': its number of partitions cannot be changed",
        )
    present = len(topic.partitions)
    if wanted.count <= present:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic '{wanted.name}' has {present} {'partition' if present == 1 else 'partitions'} already; "
            "their number can only grow",
        )
    additional = wanted.count - present
    check_record_count(additional)
    replication_factor = _replication_factor(topic)
    if wanted.assignments is None:
        replicas = place_replicas(image.brokers.values(), additional, replication_factor, random)
    else:
        if len(wanted.assignments) != additional:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"the number of partitions to be added is {additional}, that of assignments {len(wanted.assignments)}",
            )
        replicas = [list(assignment.broker_ids) for assignment in wanted.assignments]
        for each in replicas:
            check_assignment(image, each, replication_factor)
    return [new_partition(image, topic.topic_id, present + index, each) for index, each in enumerate(replicas)]


def _replication_factor(topic: TopicImage) -> int:
    """That of partition 0: every partition of a topic is created with the same.

    During a reassignment, it is that which the partition will have.
    """
    return len(assignment_of(topic.partitions[0]).target)
