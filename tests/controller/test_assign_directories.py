"""A broker reports which of its directories have its replicas."""

from typing import Any

from quire.controller.assign_directories import assign_replicas_to_dirs
from quire.controller.controller_result import ControllerResult
from quire.controller.elections import settle
from quire.metadata.image import ClusterImage
from quire.metadata.partition_image import LOST_DIRECTORY, RECOVERING
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import assign_replicas_to_dirs as messages
from quire.protocol.messages.metadata_records import ConfigRecord, PartitionChangeRecord
from tests.controller.images import CONFIG, TOPIC_ID, after, carried_out, cluster, directory, partition, topic


def assign(
    image: ClusterImage, to: bytes, *indexes: int, topic_id: bytes = TOPIC_ID
) -> ControllerResult[messages.AssignReplicasToDirsResponse]:
    wanted = messages.AssignReplicasToDirsRequestTopicData(
        topic_id=topic_id,
        partitions=[messages.AssignReplicasToDirsRequestPartitionData(partition_index=each) for each in indexes],
    )
    held = messages.AssignReplicasToDirsRequestDirectoryData(id=to, topics=[wanted])
    request = messages.AssignReplicasToDirsRequest(broker_id=1, broker_epoch=5, directories=[held])
    return assign_replicas_to_dirs(image, CONFIG, request)


def codes(result: ControllerResult[messages.AssignReplicasToDirsResponse]) -> list[int]:
    return [each.error_code for each in result.response.directories[0].topics[0].partitions]


def test_a_replica_that_is_where_the_image_says_needs_no_record() -> None:
    image = cluster(topic(), partition(0, (1,)))
    result = assign(image, directory(1), 0)
    assert (codes(result), result.records) == ([ErrorCode.NONE], [])


def test_each_replica_is_assigned_or_refused_on_its_own() -> None:
    image = cluster(topic(), partition(0, (2, 1)), partition(1, (2,)), brokers=2)
    image.brokers[1] = image.brokers[1]._replace(log_dirs=(directory(1), directory(7)))
    result = assign(image, directory(7), 0, 1, 9)
    assert codes(result) == [
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    changed = after(image, result.records).topics_by_name["orders"].partitions[0]
    assert changed.directories == (directory(2), directory(7))
    assert codes(assign(image, directory(7), 0, topic_id=b"u" * 16)) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert codes(assign(image, bytes(16), 0)) == [ErrorCode.INVALID_REQUEST]


def test_a_replica_in_a_directory_that_has_failed_leads_no_longer() -> None:
    image = cluster(topic(), partition(0, (1, 2)), brokers=2)
    result = assign(image, directory(7), 0)
    later = after(image, result.records).topics_by_name["orders"].partitions[0]
    assert (later.leader, later.isr, later.directories) == (2, (2,), (directory(7), directory(2)))


def test_a_partition_that_waited_for_a_replica_in_a_new_directory_gets_its_leader() -> None:
    image = cluster(topic(), partition(0, (1,), leader=-1))
    image.brokers[1] = image.brokers[1]._replace(log_dirs=(directory(7),))
    later = after(image, assign(image, directory(7), 0).records).topics_by_name["orders"].partitions[0]
    assert (later.leader, later.isr, later.directories) == (1, (1,), (directory(7),))


def test_a_broker_that_is_fenced_leads_nothing_in_its_new_directory() -> None:
    image = cluster(topic(), partition(0, (1,), leader=-1))
    image.brokers[1] = image.brokers[1]._replace(log_dirs=(directory(7),), fenced=True)
    later = after(image, assign(image, directory(7), 0).records).topics_by_name["orders"].partitions[0]
    assert (later.leader, later.directories) == (-1, (directory(7),))


ELIGIBLE = {"eligible.leader.replicas.version": 1}


def test_a_replica_whose_old_directory_is_gone_is_new_and_not_in_sync() -> None:
    image = cluster(topic(), partition(0, (1, 2, 3)), brokers=3)
    image.brokers[1] = image.brokers[1]._replace(log_dirs=(directory(7),))
    later = after(image, assign(image, directory(7), 0).records).topics_by_name["orders"].partitions[0]
    assert (later.leader, later.isr, later.directories[0]) == (2, (2, 3), directory(7))


def test_a_replica_whose_old_directory_is_gone_is_not_eligible_to_lead() -> None:
    image = cluster(topic(), partition(0, (1, 2), (), -1, elr=(1, 2)), brokers=1, features=ELIGIBLE)
    image.brokers[1] = image.brokers[1]._replace(log_dirs=(directory(7),))
    later = after(image, assign(image, directory(7), 0).records).topics_by_name["orders"].partitions[0]
    assert (later.leader, later.elr) == (-1, (2,))


def changed_record(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields)


LAST = partition(0, (1, 2, 3), (), -1, last_known_elr=(1,))
UNCLEAN = ConfigRecord(resource_type=2, resource_name="orders", name="unclean.leader.election.enable", value="true")


def test_a_last_leader_whose_disk_was_replaced_does_not_empty_the_other_replicas() -> None:
    image = cluster(topic(), LAST, brokers=3, features=ELIGIBLE)
    image.brokers[1] = image.brokers[1]._replace(log_dirs=(directory(7),))
    later = after(image, assign(image, directory(7), 0).records)
    waiting = later.topics_by_name["orders"].partitions[0]
    assert (waiting.leader, waiting.isr, waiting.last_known_elr) == (-1, (), (2, 3))
    allowed = after(later, [UNCLEAN])
    elected = after(allowed, carried_out(allowed, lambda image: settle(image, CONFIG, 1)).records)
    assert elected.topics_by_name["orders"].partitions[0].leader == 2, "although it is not the first replica"


def test_a_last_leader_whose_folder_was_never_created_leads_again() -> None:
    """As after a kill of all brokers just after the topic was created: the others have no folder either."""
    lost = changed_record(directories=[LOST_DIRECTORY] * 3)
    image = cluster(topic(), partition(0, (1, 2, 3), (), -1, last_known_elr=(1,)), lost, brokers=3, features=ELIGIBLE)
    later = after(image, assign(image, directory(1), 0).records).topics_by_name["orders"].partitions[0]
    assert (later.leader, later.isr, later.directories[0]) == (1, (1,), directory(1))


def test_the_only_other_replica_leads_when_the_disk_of_the_last_leader_was_replaced() -> None:
    """What it lacks is gone, whichever replica leads."""
    image = cluster(topic(), partition(0, (1, 2), (), -1, last_known_elr=(1,)), brokers=2, features=ELIGIBLE)
    image.brokers[1] = image.brokers[1]._replace(log_dirs=(directory(7),))
    later = after(image, assign(image, directory(7), 0).records).topics_by_name["orders"].partitions[0]
    assert (later.leader, later.isr, later.leader_recovery_state) == (2, (2,), RECOVERING)


def test_the_only_replica_leads_again_when_its_disk_was_replaced() -> None:
    image = cluster(topic(), partition(0, (1,), (), -1, last_known_elr=(1,)), features=ELIGIBLE)
    image.brokers[1] = image.brokers[1]._replace(log_dirs=(directory(7),))
    later = after(image, assign(image, directory(7), 0).records).topics_by_name["orders"].partitions[0]
    assert (later.leader, later.isr, later.leader_recovery_state) == (1, (1,), RECOVERING)


def test_a_replica_that_its_broker_has_lost_is_not_eligible_until_it_is_in_sync_again() -> None:
    image = cluster(topic(), partition(0, (1, 2), (), -1, elr=(1, 2)), brokers=1, features=ELIGIBLE)
    image.brokers[1] = image.brokers[1]._replace(fenced=True)
    lost = after(image, assign(image, LOST_DIRECTORY, 0).records)
    later = lost.topics_by_name["orders"].partitions[0]
    assert (later.leader, later.elr, later.directories[0]) == (-1, (2,), LOST_DIRECTORY)
    lost.brokers[1] = lost.brokers[1]._replace(fenced=False)
    found = after(lost, assign(lost, directory(1), 0).records).topics_by_name["orders"].partitions[0]
    assert (found.leader, found.elr, found.directories[0]) == (-1, (2,), directory(1))


def test_a_follower_reports_its_directory_and_nothing_else_changes() -> None:
    image = cluster(topic(), partition(0, (2, 1)), brokers=2)
    image.brokers[1] = image.brokers[1]._replace(log_dirs=(directory(1), directory(7)))
    before = image.topics_by_name["orders"].partitions[0]
    later = after(image, assign(image, directory(7), 0).records).topics_by_name["orders"].partitions[0]
    assert later == before._replace(directories=(directory(2), directory(7)), partition_epoch=1)
