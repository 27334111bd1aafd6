"""FetchSnapshot: other nodes read a snapshot of the metadata log, part by part."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from quire.raft import snapshot_file
from quire.raft.log_store import FOLDER
from quire.raft.log_summary import LogPosition
from quire.raft.replicas import ReplicaKey
from quire.raft.wire import fetch_snapshot
from quire.raft.wire.fetch_snapshot import SnapshotPart, SnapshotPartRequest
from tests.node.conftest import SimulatedNode

PATH = f"/data/{FOLDER}"


@pytest.fixture
def newest(node: SimulatedNode) -> LogPosition:
    node.node.metadata.log.take_snapshot()
    node.clock.run_for(100)
    return snapshot_file.list_snapshots(node.disk, PATH)[-1]


def fetched(
    node: SimulatedNode, position: LogPosition, offset: int, max_bytes: int = 1 << 20, epoch: int = 1
) -> SnapshotPart:
    node.info.listener = "CONTROLLER"
    message = SnapshotPartRequest(epoch, ReplicaKey(7), position, offset, max_bytes)
    response = node.call(fetch_snapshot.request(message, node.node.cluster_id), 1, FetchSnapshotResponse)
    return fetch_snapshot.answer(response, message)


def test_the_parts_of_a_snapshot_are_its_file(node: SimulatedNode, newest: LogPosition) -> None:
    content = b""
    while True:
        part = fetched(node, newest, len(content), max_bytes=50)
        content += part.content
        if len(content) == part.size:
            break
    assert content == node.disk.read_file(f"{PATH}/{snapshot_file.file_name(newest)}")


def test_the_first_version_is_answered_too(node: SimulatedNode, newest: LogPosition) -> None:
    node.info.listener = "CONTROLLER"
    message = SnapshotPartRequest(1, ReplicaKey(7), newest, 0)
    response = node.call(fetch_snapshot.request(message, node.node.cluster_id), 0, FetchSnapshotResponse)
    assert fetch_snapshot.answer(response, message).content
    assert response.node_endpoints == []


def test_a_missing_snapshot_is_not_found(node: SimulatedNode, newest: LogPosition) -> None:
    assert fetched(node, LogPosition(1, newest.offset + 1), 0).error is ErrorCode.SNAPSHOT_NOT_FOUND


def test_a_part_after_the_end_is_out_of_range(node: SimulatedNode, newest: LogPosition) -> None:
    size = fetched(node, newest, 0).size
    assert fetched(node, newest, size).error is ErrorCode.POSITION_OUT_OF_RANGE


@pytest.mark.parametrize(("epoch", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (5, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_another_epoch_gets_the_leader(node: SimulatedNode, newest: LogPosition, epoch: int, error: ErrorCode) -> None:
    part = fetched(node, newest, 0, epoch=epoch)
    assert (part.error, part.epoch, part.leader_id) == (error, 1, 1)


def test_a_node_of_another_cluster_is_refused(node: SimulatedNode, newest: LogPosition) -> None:
    node.info.listener = "CONTROLLER"
    request = fetch_snapshot.request(SnapshotPartRequest(1, ReplicaKey(7), newest, 0), "other")
    assert node.call(request, 1, FetchSnapshotResponse).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
