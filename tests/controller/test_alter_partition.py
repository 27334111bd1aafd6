"""AlterPartition, by the rules of Kafka's ReplicationControlManager."""

from typing import Any

import pytest

from quire.controller.alter_partition import alter_partition
from quire.controller.controller_result import ControllerResult
from quire.metadata.image import ClusterImage
from quire.metadata.partition_image import LOST_DIRECTORY, RECOVERED, RECOVERING, PartitionImage
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import alter_partition as messages
from tests.controller.images import (
    CONFIG,
    TOPIC_ID,
    after,
    broker,
    carried_out,
    cluster,
    directory,
    partition,
    setting,
    topic,
)

LEADER, EPOCH = 1, 5
ELIGIBLE = {"eligible.leader.replicas.version": 1}
OF_TWO = setting(2, "orders", "min.insync.replicas", "2")


def three(isr: tuple[int, ...] = (1, 2, 3), **fields: Any) -> ClusterImage:
    """One partition with a replica on each of three brokers, led by broker 1."""
    return cluster(topic(), partition(0, (1, 2, 3), isr, **fields), brokers=3)


def with_partition(image: ClusterImage, **fields: Any) -> ClusterImage:
    partitions = image.topics_by_name["orders"].partitions
    partitions[0] = partitions[0]._replace(**fields)
    return image


def asked(*isr: int, index: int = 0, **fields: Any) -> messages.AlterPartitionRequestPartitionData:
    members = [messages.BrokerState(broker_id=each, broker_epoch=EPOCH) for each in isr]
    given: dict[str, Any] = {"partition_index": index, "new_isr_with_epochs": members}
    return messages.AlterPartitionRequestPartitionData(**given | fields)


def alter(
    image: ClusterImage,
    *partitions: messages.AlterPartitionRequestPartitionData,
    sender: int = LEADER,
    epoch: int = EPOCH,
    topic_id: bytes = TOPIC_ID,
) -> ControllerResult[messages.AlterPartitionResponse]:
    topics = [messages.AlterPartitionRequestTopicData(topic_id=topic_id, partitions=list(partitions))]
    request = messages.AlterPartitionRequest(broker_id=sender, broker_epoch=epoch, topics=topics)
    return carried_out(image, lambda later: alter_partition(later, CONFIG, request))


def results(
    result: ControllerResult[messages.AlterPartitionResponse],
) -> list[messages.AlterPartitionResponsePartitionData]:
    assert result.response.error_code == ErrorCode.NONE
    return result.response.topics[0].partitions


def refusal(image: ClusterImage, *partitions: messages.AlterPartitionRequestPartitionData, **sender: Any) -> ErrorCode:
    """The error of the only partition; nothing was written."""
    result = alter(image, *partitions, **sender)
    assert result.records == []
    (refused,) = results(result)
    assert (refused.leader_id, refused.isr) == (0, [])
    return ErrorCode(refused.error_code)


def changed(image: ClusterImage, wanted: messages.AlterPartitionRequestPartitionData) -> PartitionImage:
    """The partition afterwards, which is also the answer to the leader."""
    result = alter(image, wanted)
    (told,) = results(result)
    assert told.error_code == ErrorCode.NONE
    later = after(image, result.records).topics_by_name["orders"].partitions[0]
    assert (told.leader_id, told.leader_epoch, told.partition_epoch) == (
        later.leader,
        later.leader_epoch,
        later.partition_epoch,
    )
    assert (tuple(told.isr), told.leader_recovery_state) == (later.isr, later.leader_recovery_state)
    return later


# --- Changes


def test_an_isr_shrinks_without_a_new_leader_epoch() -> None:
    later = changed(three(), asked(1, 3))
    assert (later.isr, later.leader, later.leader_epoch, later.partition_epoch) == ((1, 3), 1, 0, 1)


def test_before_3_6_a_smaller_isr_is_a_new_leader_epoch() -> None:
    image = cluster(topic(), partition(0, (1, 2, 3)), brokers=3, features={"metadata.version": 11})
    assert changed(image, asked(1, 3)).leader_epoch == 1
    assert changed(with_partition(image, isr=(1, 2)), asked(1, 3)).leader_epoch == 1
    assert changed(with_partition(image, isr=(1, 2)), asked(1, 2, 3)).leader_epoch == 0


def test_an_isr_expands() -> None:
    assert changed(three((1,)), asked(1, 2)).isr == (1, 2)


def test_a_request_for_the_current_isr_succeeds_and_writes_nothing() -> None:
    for members in ((1, 2, 3), (3, 1, 2)):
        result = alter(three(), asked(*members))
        assert (result.records, results(result)[0].isr) == ([], [1, 2, 3])


def test_members_without_an_epoch_are_not_checked_for_one() -> None:
    """Version 2 has none; in version 3, the leader may not know with which registration a replica fetched."""
    without = asked()
    without.new_isr = [1, 2]
    assert changed(three(), without).isr == (1, 2)
    unknown = asked(1)
    unknown.new_isr_with_epochs.append(messages.BrokerState(broker_id=3))
    assert changed(three(), unknown).isr == (1, 3)


def test_each_partition_is_changed_or_refused_on_its_own() -> None:
    image = cluster(topic(), *(partition(index, (1, 2)) for index in range(3)), brokers=2)
    result = alter(image, asked(1, index=0), asked(index=1), asked(1, index=9), asked(1, index=2))
    assert [each.error_code for each in results(result)] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    assert [each.partition_index for each in results(result)] == [0, 1, 9, 2]
    assert len(result.records) == 2


def test_a_partition_that_is_named_twice_is_changed_once() -> None:
    result = alter(three(), asked(1, 2), asked(1, 3))
    assert [each.error_code for each in results(result)] == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert len(result.records) == 1


# --- Eligible leader replicas (KIP-966)


def eligible(isr: tuple[int, ...], **fields: Any) -> ClusterImage:
    return cluster(topic(), partition(0, (1, 2, 3), isr, **fields), OF_TWO, brokers=3, features=ELIGIBLE)


def test_below_the_minimum_members_that_leave_stay_eligible() -> None:
    later = changed(eligible((1, 2, 3)), asked(1))
    assert (later.isr, later.elr) == ((1,), (2, 3))


def test_at_the_minimum_members_that_leave_are_not_eligible() -> None:
    later = changed(eligible((1, 2, 3)), asked(1, 2))
    assert (later.isr, later.elr) == ((1, 2), ())


def test_an_isr_that_reaches_the_minimum_again_needs_no_eligible_replicas() -> None:
    later = changed(eligible((1,), elr=(2,), last_known_elr=(3,)), asked(1, 3))
    assert (later.isr, later.elr, later.last_known_elr) == ((1, 3), (), ())


def test_the_minimum_is_at_most_the_number_of_replicas() -> None:
    of_two = setting(2, "orders", "min.insync.replicas", "3")
    image = cluster(
        topic(),
        partition(0, (1, 2), (1,), elr=(2,)),
        of_two,
        brokers=2,
        features={"eligible.leader.replicas.version": 1},
    )
    later = changed(image, asked(1, 2))
    assert (later.isr, later.elr) == ((1, 2), ())


# --- The recovery of a leader that was elected unclean


def test_a_leader_recovers_and_then_takes_others_into_the_isr() -> None:
    image = with_partition(three((1,)), leader_recovery_state=RECOVERING)
    alone = asked(1, leader_recovery_state=RECOVERING)
    assert alter(image, alone).records == []
    later = changed(image, asked(1, 2))
    assert (later.isr, later.leader_recovery_state) == ((1, 2), RECOVERED)


@pytest.mark.parametrize(
    ("state", "wanted", "isr"), [(RECOVERING, RECOVERING, (1, 2)), (RECOVERED, RECOVERING, (1,)), (RECOVERED, 7, (1,))]
)
def test_a_recovery_that_cannot_be_is_refused(state: int, wanted: int, isr: tuple[int, ...]) -> None:
    image = with_partition(three((1,)), leader_recovery_state=state)
    assert refusal(image, asked(*isr, leader_recovery_state=wanted)) is ErrorCode.INVALID_REQUEST


# --- Refusals


@pytest.mark.parametrize(("sender", "epoch"), [(LEADER, 4), (LEADER, 6), (LEADER, -1), (9, EPOCH)])
def test_a_sender_with_another_registration_changes_nothing(sender: int, epoch: int) -> None:
    result = alter(three(), asked(1), sender=sender, epoch=epoch)
    assert (result.response.error_code, result.response.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])
    assert result.records == []


def test_missing_topics_and_partitions_are_refused() -> None:
    assert refusal(three(), asked(1), topic_id=b"u" * 16) is ErrorCode.UNKNOWN_TOPIC_ID
    assert refusal(three(), asked(1), topic_id=bytes(16)) is ErrorCode.UNKNOWN_TOPIC_ID
    assert refusal(three(), asked(1, index=1)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(three(), asked(1, index=-1)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch", "sender", "code"),
    [
        (4, 7, LEADER, ErrorCode.FENCED_LEADER_EPOCH),
        (4, 7, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (6, 7, LEADER, ErrorCode.NOT_CONTROLLER),
        (4, 8, LEADER, ErrorCode.NOT_CONTROLLER),
        (5, 8, LEADER, ErrorCode.NOT_CONTROLLER),
        (5, 6, LEADER, ErrorCode.INVALID_UPDATE_VERSION),
        (5, 7, 2, ErrorCode.INVALID_REQUEST),
        (5, 6, 2, ErrorCode.INVALID_REQUEST),
    ],
)
def test_only_the_leader_that_has_seen_the_present_state_may_change_it(
    leader_epoch: int, partition_epoch: int, sender: int, code: ErrorCode
) -> None:
    image = with_partition(three(), leader_epoch=5, partition_epoch=7)
    wanted = asked(1, 2, leader_epoch=leader_epoch, partition_epoch=partition_epoch)
    assert refusal(image, wanted, sender=sender) is code


@pytest.mark.parametrize("isr", [(), (2,), (2, 3), (1, 1), (1, 2, 2), (1, 9), (1, -1), (1, 4)])
def test_an_isr_that_cannot_be_is_refused(isr: tuple[int, ...]) -> None:
    image = cluster(topic(), partition(0, (1, 2, 3)), brokers=4)
    assert refusal(image, asked(*isr)) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "state",
    [{"fenced": True}, {"in_controlled_shutdown": True}, {"epoch": 6}, {"log_dirs": (b"x" * 16,)}],
    ids=["fenced", "shutting down", "registered again", "without the directory"],
)
def test_a_replica_that_may_not_have_everything_does_not_join(state: dict[str, Any]) -> None:
    image = three((1,))
    image.brokers[2] = image.brokers[2]._replace(**state)
    does_not_join(image)


def test_a_replica_whose_broker_was_unregistered_does_not_join() -> None:
    image = three((1,))
    del image.brokers[2]
    does_not_join(image)


def test_a_replica_that_was_lost_does_not_join_before_its_new_directory_is_known() -> None:
    image = three((1,))
    held = image.topics_by_name["orders"].partitions[0].directories
    does_not_join(with_partition(image, directories=(held[0], LOST_DIRECTORY, held[2])))
    assert changed(with_partition(image, directories=held), asked(1, 2)).isr == (1, 2)


def does_not_join(image: ClusterImage) -> ClusterImage:
    """Broker 2 is refused, and the partition has a new epoch and is otherwise as before."""
    before = image.topics_by_name["orders"].partitions[0]
    result = alter(image, asked(1, 2))
    (refused,) = results(result)
    assert (refused.error_code, refused.leader_id, refused.isr) == (ErrorCode.INELIGIBLE_REPLICA, 0, [])
    later = after(image, result.records)
    assert later.topics_by_name["orders"].partitions[0] == before._replace(partition_epoch=before.partition_epoch + 1)
    return later


def test_a_request_that_arrives_after_a_refusal_of_the_same_changes_nothing() -> None:
    """The member is eligible again by then, and its leader no longer knows of this request."""
    image = three((1,))
    image.brokers[2] = image.brokers[2]._replace(fenced=True)
    later = does_not_join(image)
    later.brokers[2] = later.brokers[2]._replace(fenced=False)
    assert refusal(later, asked(1, 2)) is ErrorCode.INVALID_UPDATE_VERSION
    assert changed(later, asked(1, 2, partition_epoch=1)).isr == (1, 2)


def test_a_leader_that_shuts_down_changes_nothing() -> None:
    image = three()
    image.brokers[1] = image.brokers[1]._replace(in_controlled_shutdown=True)
    assert refusal(image, asked(1)) is ErrorCode.INELIGIBLE_REPLICA


def test_a_leader_whose_directory_has_failed_meanwhile_is_replaced() -> None:
    image = three((1, 2))
    image.brokers[1] = image.brokers[1]._replace(log_dirs=(b"x" * 16,))
    result = alter(image, asked(1, 2, 3))
    assert results(result)[0].error_code == ErrorCode.NEW_LEADER_ELECTED
    later = after(image, result.records).topics_by_name["orders"].partitions[0]
    assert (later.leader, later.leader_epoch, later.isr) == (2, 1, (1, 2, 3))
    assert later.directories == (directory(1), directory(2), directory(3))


def test_a_broker_that_is_fenced_and_back_joins_with_its_new_registration_alone() -> None:
    image = does_not_join(after(three((1,)), [broker(2, epoch=9)]))
    newer = asked(1, partition_epoch=1)
    newer.new_isr_with_epochs.append(messages.BrokerState(broker_id=2, broker_epoch=9))
    assert changed(image, newer).isr == (1, 2)
