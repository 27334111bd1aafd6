"""AlterPartition over the controller listener."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import alter_partition as messages
from quire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.node.api.denying import deny
from tests.node.api.other_nodes import OTHER_ID, ask_controller, beat, lose_controller, register
from tests.node.conftest import SimulatedNode


def led_by_the_other(node: SimulatedNode) -> bytes:
    """The id of a topic with one partition on both brokers, led by broker 2."""
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[OTHER_ID, node.node.node_id])
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment])
    response = node.call(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7, CreateTopicsResponse)
    assert response.topics[0].error_code == ErrorCode.NONE
    return response.topics[0].topic_id


def alter(
    node: SimulatedNode, epoch: int, topic_id: bytes = bytes(16), *isr: int, version: int = 3, partition_epoch: int = 0
) -> messages.AlterPartitionResponse:
    wanted = messages.AlterPartitionRequestPartitionData(partition_index=0, partition_epoch=partition_epoch)
    if version >= 3:
        wanted.new_isr_with_epochs = [messages.BrokerState(broker_id=each) for each in isr]
    else:
        wanted.new_isr = list(isr)
    request = messages.AlterPartitionRequest(
        broker_id=OTHER_ID,
        broker_epoch=epoch,
        topics=[messages.AlterPartitionRequestTopicData(topic_id=topic_id, partitions=[wanted])],
    )
    return ask_controller(node, request, version, messages.AlterPartitionResponse)


@pytest.mark.parametrize("version", [2, 3])
def test_the_leader_is_answered_when_the_image_has_the_change(node: SimulatedNode, version: int) -> None:
    epoch = register(node)
    beat(node, epoch)
    topic_id = led_by_the_other(node)
    answer = alter(node, epoch, topic_id, OTHER_ID, version=version)
    told = answer.topics[0].partitions[0]
    assert (answer.topics[0].topic_id, told.error_code) == (topic_id, ErrorCode.NONE)
    assert (told.isr, told.leader_id, told.leader_epoch, told.partition_epoch) == ([OTHER_ID], OTHER_ID, 0, 1)
    assert node.node.image.topics_by_id[topic_id].partitions[0].isr == (OTHER_ID,)
    again = alter(node, epoch, topic_id, OTHER_ID, node.node.node_id, version=version)
    assert again.topics[0].partitions[0].error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_an_old_or_unknown_registration_changes_nothing(node: SimulatedNode) -> None:
    assert alter(node, 4).error_code == ErrorCode.STALE_BROKER_EPOCH
    epoch = register(node)
    assert alter(node, epoch - 1).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_controller_that_is_not_active_changes_nothing(node: SimulatedNode) -> None:
    epoch = register(node)
    lose_controller(node)
    assert alter(node, epoch).error_code == ErrorCode.NOT_CONTROLLER


def test_only_nodes_change_an_isr(node: SimulatedNode) -> None:
    epoch = register(node)
    deny(node, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    assert alter(node, epoch).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
