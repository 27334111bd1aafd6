"""What the transcripts do not show of AlterPartitionReassignments: directories, the leader's answer, portions."""

from typing import Any

from quire.controller.alter_partition import alter_partition
from quire.controller.alter_partition_reassignments import alter_partition_reassignments
from quire.metadata.image import ClusterImage
from quire.metadata.partition_image import UNASSIGNED_DIRECTORY
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import alter_partition as isr_messages
from quire.protocol.messages import alter_partition_reassignments as messages
from quire.protocol.messages.metadata_records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.controller.images import CONFIG, TOPIC_ID, after, carried_out, cluster, directory, partition, topic


def moved(image: ClusterImage, replicas: list[int] | None, partitions: int = 1) -> ClusterImage:
    wanted = [messages.ReassignablePartition(partition_index=index, replicas=replicas) for index in range(partitions)]
    request = messages.AlterPartitionReassignmentsRequest(
        topics=[messages.ReassignableTopic(name="orders", partitions=wanted)]
    )
    result = carried_out(image, lambda later: alter_partition_reassignments(later, CONFIG, request))
    assert {each.error_code for each in result.response.responses[0].partitions} == {ErrorCode.NONE}
    return after(image, result.records)


def in_sync(image: ClusterImage, *isr: int) -> tuple[ClusterImage, isr_messages.AlterPartitionResponsePartitionData]:
    """The ISR that the leader asks for, and its answer."""
    known = image.topics_by_name["orders"].partitions[0]
    data: Any = isr_messages.AlterPartitionRequestPartitionData(
        partition_index=0,
        leader_epoch=known.leader_epoch,
        partition_epoch=known.partition_epoch,
        new_isr_with_epochs=[isr_messages.BrokerState(broker_id=each, broker_epoch=5) for each in isr],
    )
    request = isr_messages.AlterPartitionRequest(
        broker_id=known.leader,
        broker_epoch=5,
        topics=[isr_messages.AlterPartitionRequestTopicData(topic_id=TOPIC_ID, partitions=[data])],
    )
    result = carried_out(image, lambda later: alter_partition(later, CONFIG, request))
    return after(image, result.records), result.response.topics[0].partitions[0]


def test_each_replica_keeps_its_directory_and_a_new_one_is_in_the_only_one_of_its_broker() -> None:
    image = cluster(topic(), partition(0, (1, 2)), brokers=4)
    two_directories = BrokerRegistrationChangeRecord(broker_id=4, broker_epoch=5, log_dirs=[b"x" * 16, b"y" * 16])
    image = moved(after(image, [two_directories]), [3, 4, 2])
    known = image.topics_by_name["orders"].partitions[0]
    assert known.replicas == (3, 4, 2, 1)
    assert known.directories == (directory(3), UNASSIGNED_DIRECTORY, directory(2), directory(1))
    image, _ = in_sync(image, 1, 2, 3, 4)
    known = image.topics_by_name["orders"].partitions[0]
    assert (known.replicas, known.directories) == ((3, 4, 2), (directory(3), UNASSIGNED_DIRECTORY, directory(2)))


def test_before_directories_had_ids_none_are_written() -> None:
    image = cluster(topic(), partition(0, (1, 2)), brokers=3, features={"metadata.version": 10})
    request = messages.AlterPartitionReassignmentsRequest(
        topics=[
            messages.ReassignableTopic(
                name="orders", partitions=[messages.ReassignablePartition(partition_index=0, replicas=[3])]
            )
        ]
    )
    result = carried_out(image, lambda later: alter_partition_reassignments(later, CONFIG, request))
    (record,) = result.records
    assert isinstance(record, PartitionChangeRecord)
    assert (record.replicas, record.directories) == ([3, 1, 2], None)


def test_a_leader_that_is_removed_is_told_that_another_one_was_elected() -> None:
    image = moved(cluster(topic(), partition(0, (1, 2)), brokers=3), [2, 3])
    image, answer = in_sync(image, 1, 2, 3)
    assert (answer.error_code, image.topics_by_name["orders"].partitions[0].leader) == (
        ErrorCode.NEW_LEADER_ELECTED,
        2,
    )


def test_a_leader_that_stays_gets_the_epoch_in_which_it_leads_without_the_removed_replica() -> None:
    image = moved(cluster(topic(), partition(0, (1, 2)), brokers=3), [1, 3])
    image, answer = in_sync(image, 1, 2, 3)
    assert (answer.error_code, answer.leader_id, answer.leader_epoch, answer.isr) == (ErrorCode.NONE, 1, 1, [1, 3])


def test_a_leader_that_has_not_heard_of_the_reassignment_changes_nothing() -> None:
    image = cluster(topic(), partition(0, (1, 2)), brokers=3)
    later = moved(image, [1, 3])
    data = isr_messages.AlterPartitionRequestPartitionData(
        partition_index=0, new_isr_with_epochs=[isr_messages.BrokerState(broker_id=1, broker_epoch=5)]
    )
    request = isr_messages.AlterPartitionRequest(
        broker_id=1,
        broker_epoch=5,
        topics=[isr_messages.AlterPartitionRequestTopicData(topic_id=TOPIC_ID, partitions=[data])],
    )
    result = carried_out(later, lambda each: alter_partition(each, CONFIG, request))
    assert result.records == []
    assert result.response.topics[0].partitions[0].error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_thousands_of_partitions_are_reassigned_one_portion_each() -> None:
    count = 3_000
    image = cluster(topic(), *(partition(index, (1, 2)) for index in range(count)), brokers=3)
    wanted = [messages.ReassignablePartition(partition_index=index, replicas=[2, 3]) for index in range(count)]
    request = messages.AlterPartitionReassignmentsRequest(
        topics=[messages.ReassignableTopic(name="orders", partitions=wanted)]
    )
    portions = list(alter_partition_reassignments(image, CONFIG, request))
    assert len(portions) == count and all(len(portion) == 1 for portion in portions)


def test_brokers_that_get_and_lose_replicas_are_found_by_their_partitions() -> None:
    """Elections ask for the partitions of a broker."""
    image = cluster(topic(), partition(0, (1, 2)), brokers=3)
    assert [index for _, index in image.replicas_on(3)] == []
    image = moved(image, [2, 3])
    assert [index for _, index in image.replicas_on(3)] == [0]
    image, _ = in_sync(image, 1, 2, 3)
    assert [index for _, index in image.replicas_on(1)] == []
