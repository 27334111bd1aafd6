"""DescribeQuorum: the leader and the voters, as far as each version can carry them."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol import uuids
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode

REQUEST = DescribeQuorumRequest(
    topics=[
        DescribeQuorumRequestTopicData(
            topic_name="__cluster_metadata", partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
        )
    ]
)


@pytest.mark.parametrize("version", range(3))
def test_one_node_leads_and_votes_in_its_own_quorum(node: SimulatedNode, version: int) -> None:
    answer = node.call(REQUEST, version, DescribeQuorumResponse)
    assert answer.error_code == ErrorCode.NONE
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, 1)
    assert partition.high_watermark > 0
    assert [voter.replica_id for voter in partition.current_voters] == [1]
    assert partition.observers == []


def test_directories_and_addresses_are_described_from_version_2_on(node: SimulatedNode) -> None:
    old = node.call(REQUEST, 1, DescribeQuorumResponse)
    assert old.nodes == []
    assert old.topics[0].partitions[0].current_voters[0].replica_directory_id == uuids.ZERO
    new = node.call(REQUEST, 2, DescribeQuorumResponse)
    assert [each.node_id for each in new.nodes] == [1]
    assert new.topics[0].partitions[0].current_voters[0].replica_directory_id != uuids.ZERO


def test_describing_the_quorum_needs_describe_on_the_cluster(node: SimulatedNode) -> None:
    deny(node, (AclOperation.DESCRIBE, CLUSTER_NAME))
    answer = node.call(REQUEST, 2, DescribeQuorumResponse)
    assert (answer.error_code, answer.topics) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    assert answer.error_message == "describing the quorum is not allowed"
