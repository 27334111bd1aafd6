"""A node with several data directories, and the requests that move its replicas between them."""

from quire.node.moves.disk_move import DiskMove
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from quire.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from quire.protocol.records import Record, build_batch, iterate_records
from quire.replication.partition import Partition
from simulator.disk import SimDisk
from tests.node.conftest import SimulatedNode

TWO = {"log.dirs": "/one,/two"}


def ask_to_move(node: SimulatedNode, path: str, topic: str = "t", index: int = 0) -> ErrorCode:
    request = AlterReplicaLogDirsRequest(
        dirs=[AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])])]
    )
    (result,) = node.call(request, 2, AlterReplicaLogDirsResponse).results
    return ErrorCode(result.partitions[0].error_code)


def partition_of(node: SimulatedNode, topic: str = "t", index: int = 0) -> Partition:
    return node.node.partitions.leader(topic, None, index).partition


def path_of(node: SimulatedNode, topic: str = "t", index: int = 0) -> str:
    return node.node.partitions.directory_of(partition_of(node, topic, index)).path


def other_of(node: SimulatedNode, topic: str = "t") -> str:
    return next(each.path for each in node.node.partitions.directories() if each.path != path_of(node, topic))


def moves_of(node: SimulatedNode) -> list[DiskMove]:
    return list(node.node.moves)


def is_quiet(node: SimulatedNode) -> bool:
    return not moves_of(node)


def with_records(count: int = 20, settings: dict[str, str] | None = None, **topic: str) -> SimulatedNode:
    node = SimulatedNode(settings={**TWO, **(settings or {})}).start()
    node.create_topic("t", 1, **topic)
    for number in range(count):
        assert produce(node, f"v{number}".encode()) == 0
    return node


def produce(node: SimulatedNode, value: bytes = b"v", topic: str = "t", index: int = 0) -> ErrorCode:
    batch = bytes(build_batch([Record(0, node.clock.now_ms(), b"k", value)]))
    data = PartitionProduceData(index=index, records=batch)
    request = ProduceRequest(
        acks=-1, timeout_ms=5_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    (answer,) = node.call(request, 9, ProduceResponse).responses[0].partition_responses
    return ErrorCode(answer.error_code)


def values_of(node: SimulatedNode, topic: str = "t", index: int = 0) -> list[bytes | None]:
    log = partition_of(node, topic, index).log
    records = iterate_records(content(node, topic, index))
    return [record.value for record in records if record.offset >= log.start_offset]


def content(node: SimulatedNode, topic: str = "t", index: int = 0) -> bytes:
    """The bytes of all segments."""
    log = partition_of(node, topic, index).log
    return b"".join(segment.file.pread(segment.size, 0) for segment in log.segments)


def folders(disk: SimDisk, path: str) -> list[str]:
    return [name for name in disk.list_dir(path) if disk.is_dir(f"{path}/{name}") and not name.startswith("__")]


def described(node: SimulatedNode) -> dict[str, list[tuple[str, int, int, bool]]]:
    """By directory: topic, partition, offset lag and whether it is a future log, of each replica."""
    answer = node.call(DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse)
    return {
        found.log_dir: [
            (topic.name, each.partition_index, each.offset_lag, each.is_future_key)
            for topic in found.topics
            for each in topic.partitions
        ]
        for found in answer.results
    }
