"""DescribeLogDirs: sizes and free space by data directory, and directories that have failed."""

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from quire.protocol.messages.produce import ProduceResponse
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request


def test_a_partition_is_found_in_its_directory_however_often_it_is_named(node: SimulatedNode) -> None:
    node.create_topic("t", partitions=3)
    wanted = [
        DescribableLogDirTopic(topic="t", partitions=[2, 2, 7]),
        DescribableLogDirTopic(topic="t", partitions=[0]),
    ]
    (directory,) = node.call(DescribeLogDirsRequest(topics=wanted), 4, DescribeLogDirsResponse).results
    assert [partition.partition_index for partition in directory.topics[0].partitions] == [0, 2]


def test_sizes_and_space_are_those_of_the_logs_and_the_disk(node: SimulatedNode) -> None:
    node.create_topic("t")
    node.call(produce_request("t"), 9, ProduceResponse)
    (directory,) = node.call(DescribeLogDirsRequest(topics=None), 5, DescribeLogDirsResponse).results
    assert (directory.error_code, directory.log_dir) == (ErrorCode.NONE, "/data")
    assert directory.usable_bytes == node.disk.free_bytes("/data")
    assert directory.total_bytes == node.disk.total_bytes("/data")
    sizes = {topic.name: [partition.partition_size for partition in topic.partitions] for topic in directory.topics}
    assert sizes == {"t": [node.node.partitions.leader("t", None, 0).log.size_bytes]}


def test_a_directory_that_has_failed_is_an_error_without_topics(node: SimulatedNode) -> None:
    node.create_topic("t")
    (directory,) = node.node.partitions.directories()
    directory.fail(OSError("the disk is gone"))
    (result,) = node.call(DescribeLogDirsRequest(topics=None), 5, DescribeLogDirsResponse).results
    assert (result.error_code, result.log_dir, result.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, "/data", [])


def test_describing_directories_needs_describe_on_the_cluster(node: SimulatedNode) -> None:
    deny(node, (AclOperation.DESCRIBE, CLUSTER_NAME))
    answer = node.call(DescribeLogDirsRequest(topics=None), 5, DescribeLogDirsResponse)
    assert (answer.error_code, answer.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
