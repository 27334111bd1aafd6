"""AssignReplicasToDirs over the controller listener."""

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
    AssignReplicasToDirsResponse,
)
from tests.node.api.denying import deny
from tests.node.api.other_nodes import OTHER_ID, ask_controller, beat, lose_controller, register
from tests.node.conftest import SimulatedNode

FIRST, SECOND = b"d" * 16, b"e" * 16


def assign(
    node: SimulatedNode, epoch: int, topic_id: bytes = bytes(16), index: int = 0
) -> AssignReplicasToDirsResponse:
    topic = AssignReplicasToDirsRequestTopicData(
        topic_id=topic_id, partitions=[AssignReplicasToDirsRequestPartitionData(partition_index=index)]
    )
    request = AssignReplicasToDirsRequest(
        broker_id=OTHER_ID,
        broker_epoch=epoch,
        directories=[AssignReplicasToDirsRequestDirectoryData(id=SECOND, topics=[topic])],
    )
    return ask_controller(node, request, 0, AssignReplicasToDirsResponse)


def test_the_image_has_the_directory_of_a_replica(node: SimulatedNode) -> None:
    epoch = register(node, log_dirs=[FIRST, SECOND])
    beat(node, epoch)
    node.create_topic("t", partitions=2)
    topic = node.node.image.topics_by_name["t"]
    (index,) = (index for index, each in topic.partitions.items() if each.leader == OTHER_ID)
    assert topic.partitions[index].directories == (bytes(16),), "the broker chooses one of its directories"
    answer = assign(node, epoch, topic.topic_id, index)
    assert answer.directories[0].topics[0].partitions[0].error_code == ErrorCode.NONE
    assert topic.partitions[index].directories == (SECOND,)
    assert topic.partitions[index].leader_epoch == 0


def test_an_old_or_unknown_registration_assigns_nothing(node: SimulatedNode) -> None:
    assert assign(node, 4).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    epoch = register(node)
    assert assign(node, epoch - 1).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_controller_that_is_not_active_assigns_nothing(node: SimulatedNode) -> None:
    epoch = register(node)
    lose_controller(node)
    assert assign(node, epoch).error_code == ErrorCode.NOT_CONTROLLER


def test_only_nodes_assign_directories(node: SimulatedNode) -> None:
    epoch = register(node)
    deny(node, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    assert assign(node, epoch).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
