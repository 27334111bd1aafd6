"""Three nodes with two data directories each, and a replicated partition that moves between them."""

from quire.node.moves.disk_moves import RATE
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from tests.node.replicas.replicated import TOPIC, Replicated


def replicated(rate: int = 1 << 30) -> Replicated:
    return Replicated(
        min_isr=1,
        log_dirs="/one,/two",
        broker_session_timeout_ms="2000",
        topic_settings={"internal.segment.bytes": "400"},
        **{RATE.replace(".", "_"): str(rate)},  # type: ignore[arg-type]
    )


def path_of(nodes: Replicated, node_id: int) -> str:
    return nodes.nodes[node_id].partitions.directory_of(nodes.partition(node_id)).path


def move(nodes: Replicated, node_id: int) -> str:
    """Begins to move the replica of this node to its other directory; returns that."""
    target = "/two" if path_of(nodes, node_id) == "/one" else "/one"
    topics = [AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=target, topics=topics)])
    (result,) = nodes.ask(node_id, request, AlterReplicaLogDirsResponse).results
    assert result.partitions[0].error_code == ErrorCode.NONE
    return target


def is_moving(nodes: Replicated, node_id: int) -> bool:
    return any(True for _ in nodes.nodes[node_id].moves)


def numbered(start: int, end: int) -> list[bytes]:
    return [b"%03d" % number for number in range(start, end)]
