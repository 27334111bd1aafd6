"""Elections of thousands of partitions; the transcripts have what happens to each."""

from quire.controller.elect_leaders import PREFERRED, elect_leaders
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.elect_leaders import ElectLeadersRequest
from tests.controller.images import CONFIG, after, carried_out, cluster, partition, topic

MANY = 3_000


def moved_away(count: int) -> ClusterImage:
    """Every partition is led by its second replica."""
    return cluster(topic(), *(partition(index, (1, 2), leader=2) for index in range(count)), brokers=2)


def test_each_partition_is_a_portion_of_its_own() -> None:
    image = moved_away(MANY)
    portions = elect_leaders(image, CONFIG, ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None))
    assert len(next(portions)) == 1, "one record, so that the controller can stop after any partition"
    result = carried_out(image, lambda each: elect_leaders(each, CONFIG, ElectLeadersRequest(topic_partitions=None)))
    assert len(result.records) == MANY
    later = after(image, result.records).topics_by_name["orders"]
    assert all(each.leader == 1 for each in later.partitions.values())


def test_partitions_that_need_nothing_are_portions_too() -> None:
    image = cluster(topic(), *(partition(index, (1, 2)) for index in range(MANY)), brokers=2)
    portions = elect_leaders(image, CONFIG, ElectLeadersRequest(topic_partitions=None))
    assert [next(portions) for _ in range(MANY)] == [[]] * MANY


def test_a_topic_that_is_deleted_meanwhile_is_left_out() -> None:
    image = moved_away(2)
    portions = elect_leaders(image, CONFIG, ElectLeadersRequest(topic_partitions=None))
    next(portions)
    image.remove_topic(image.topics_by_name["orders"])
    assert next(portions) == []
    try:
        next(portions)
    except StopIteration as end:
        (results,) = end.value.replica_election_results
    assert [(each.partition_id, each.error_code) for each in results.partition_result] == [(0, ErrorCode.NONE)]


def test_a_partition_that_finds_no_room_is_refused_and_the_next_is_tried() -> None:
    portions = elect_leaders(moved_away(2), CONFIG, ElectLeadersRequest(topic_partitions=None))
    next(portions)
    portions.throw(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full"))
    try:
        next(portions)
        next(portions)
    except StopIteration as end:
        (results,) = end.value.replica_election_results
    assert [each.error_code for each in results.partition_result] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
