"""ListPartitionReassignments: the partitions whose replicas are being changed, as the active controller knows them."""

from collections.abc import Iterable

from quire.controller.controller_result import Portions
from quire.metadata.image import ClusterImage, TopicImage
from quire.protocol.errors import ApiError
from quire.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

PARTITIONS_PER_PORTION = 100


def list_partition_reassignments(
    image: ClusterImage, request: ListPartitionReassignmentsRequest
) -> Portions[ListPartitionReassignmentsResponse]:
    """Those of all topics, or of the partitions that the request names. What does not exist is left out."""
    response = ListPartitionReassignmentsResponse(error_message=None)
    wanted: list[tuple[str, list[int] | None]]
    if request.topics is None:
        wanted = [(topic.name, None) for topic in image.topics_sorted()]
    else:
        wanted = [(each.name, list(dict.fromkeys(each.partition_indexes))) for each in request.topics]
    for name, indexes in wanted:
        topic = image.topic(name)
        if topic is None:
            continue
        ongoing = OngoingTopicReassignment(name=name)
        left = list(topic.partitions) if indexes is None else indexes
        while left:
            ongoing.partitions += _ongoing(topic, left[:PARTITIONS_PER_PORTION])
            left = left[PARTITIONS_PER_PORTION:]
            yield []
        if ongoing.partitions:
            response.topics.append(ongoing)
    return response


def refuse(request: ListPartitionReassignmentsRequest, error: ApiError) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)


def _ongoing(topic: TopicImage, indexes: Iterable[int]) -> list[OngoingPartitionReassignment]:
    partitions = ((index, topic.partitions.get(index)) for index in indexes)
    return [
        OngoingPartitionReassignment(
            partition_index=index,
            replicas=list(partition.replicas),
            adding_replicas=list(partition.adding_replicas),
            removing_replicas=list(partition.removing_replicas),
        )
        for index, partition in partitions
        if partition is not None and partition.is_reassigning
    ]
