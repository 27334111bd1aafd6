"""ListPartitionReassignments in portions; the transcripts show what it lists."""

from quire.controller.list_partition_reassignments import PARTITIONS_PER_PORTION, list_partition_reassignments
from quire.metadata.partition_image import PartitionImage
from quire.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.controller.images import carried_out, cluster, partition, topic


def test_a_long_list_lets_other_requests_run_in_between() -> None:
    count = 3 * PARTITIONS_PER_PORTION
    image = cluster(topic(), *(partition(index, (1, 2)) for index in range(count)), brokers=3)
    partitions = image.topics_by_name["orders"].partitions
    for index in (0, count - 1):
        partitions[index] = PartitionImage((2, 3, 1), (1, 2), 1, adding_replicas=(3,), removing_replicas=(1,))
    portions = list(list_partition_reassignments(image, ListPartitionReassignmentsRequest()))
    assert portions == [[], [], []]
    response = carried_out(
        image, lambda later: list_partition_reassignments(later, ListPartitionReassignmentsRequest())
    ).response
    assert [each.partition_index for each in response.topics[0].partitions] == [0, count - 1]


def test_a_partition_that_is_named_twice_is_listed_once() -> None:
    image = cluster(topic(), partition(0, (1, 2)), brokers=3)
    image.topics_by_name["orders"].partitions[0] = PartitionImage((1, 2), (1,), 1, adding_replicas=(2,))
    named = [ListPartitionReassignmentsTopics(name="orders", partition_indexes=[0, 0])]
    request = ListPartitionReassignmentsRequest(topics=named)
    response = carried_out(image, lambda later: list_partition_reassignments(later, request)).response
    assert [each.partition_index for each in response.topics[0].partitions] == [0]
