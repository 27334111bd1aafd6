"""OffsetForLeaderEpoch: where epochs end, partition by partition."""

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from quire.protocol.messages.produce import ProduceResponse
from quire.replication.members import Members
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request


def epoch_end(
    node: SimulatedNode, epoch: int, *, index: int = 0, current_leader_epoch: int = -1
) -> tuple[int, int, int]:
    """Error, epoch and end offset."""
    wanted = OffsetForLeaderPartition(partition=index, current_leader_epoch=current_leader_epoch, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[wanted])])
    (answer,) = node.call(request, 4, OffsetForLeaderEpochResponse).topics[0].partitions
    return answer.error_code, answer.leader_epoch, answer.end_offset


def with_two_epochs() -> SimulatedNode:
    """Two records of epoch 0 and one of epoch 1."""
    node = SimulatedNode().start()
    node.create_topic("t")
    node.call(produce_request("t"), 9, ProduceResponse)
    node.call(produce_request("t"), 9, ProduceResponse)
    leader = node.node.partitions.leader("t", None, 0)
    leader.partition.become_leader(1, Members((1,), (1,)))
    node.call(produce_request("t"), 9, ProduceResponse)
    return node


def test_an_old_epoch_ends_where_the_next_begins_and_the_current_one_at_the_log_end() -> None:
    node = with_two_epochs()
    assert epoch_end(node, 0) == (ErrorCode.NONE, 0, 2)
    assert epoch_end(node, 1) == (ErrorCode.NONE, 1, 3)


def test_an_epoch_that_is_still_to_come_has_no_end() -> None:
    assert epoch_end(with_two_epochs(), 2) == (ErrorCode.NONE, -1, -1)


def test_the_clients_own_epoch_is_checked() -> None:
    node = with_two_epochs()
    assert epoch_end(node, 0, current_leader_epoch=0) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert epoch_end(node, 0, current_leader_epoch=2) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)


def test_an_unknown_partition_and_a_topic_that_may_not_be_described_are_refused() -> None:
    node = with_two_epochs()
    assert epoch_end(node, 0, index=7) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    deny(node, (AclOperation.DESCRIBE, "t"))
    assert epoch_end(node, 0) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1, -1)
