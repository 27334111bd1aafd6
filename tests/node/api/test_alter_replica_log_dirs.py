"""AlterReplicaLogDirs: what is begun, remembered and refused."""

import pytest

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.moves.moving import TWO, ask_to_move, is_quiet, moves_of, other_of, path_of, with_records


@pytest.mark.parametrize("version", [1, 2])
def test_every_partition_has_its_result(version: int) -> None:
    node = SimulatedNode(settings=TWO).start()
    node.create_topic("a", partitions=2)
    node.create_topic("b")
    dirs = [
        AlterReplicaLogDir(path="/one", topics=[AlterReplicaLogDirTopic(name="a", partitions=[0, 1])]),
        AlterReplicaLogDir(
            path="/two",
            topics=[
                AlterReplicaLogDirTopic(name="b", partitions=[0, 7]),
                AlterReplicaLogDirTopic(name="a", partitions=[2]),
            ],
        ),
    ]
    answer = node.call(AlterReplicaLogDirsRequest(dirs=dirs), version, AlterReplicaLogDirsResponse)
    results = {
        (topic.topic_name, each.partition_index): ErrorCode(each.error_code)
        for topic in answer.results
        for each in topic.partitions
    }
    assert results == {
        ("a", 0): ErrorCode.NONE,
        ("a", 1): ErrorCode.NONE,
        ("b", 0): ErrorCode.NONE,
        ("b", 7): ErrorCode.REPLICA_NOT_AVAILABLE,
        ("a", 2): ErrorCode.REPLICA_NOT_AVAILABLE,
    }
    node.clock.run_until(lambda: is_quiet(node))
    assert {path_of(node, "a", 0), path_of(node, "a", 1)} == {"/one"}
    assert path_of(node, "b") == "/two"


def test_what_cannot_be_is_refused() -> None:
    node = with_records(1)
    assert ask_to_move(node, "/three") == ErrorCode.LOG_DIR_NOT_FOUND
    assert ask_to_move(node, "/one", "__cluster_metadata") == ErrorCode.INVALID_TOPIC_EXCEPTION
    long_name = "x" * 240
    node.create_topic(long_name)
    assert ask_to_move(node, other_of(node, long_name), long_name) == ErrorCode.INVALID_TOPIC_EXCEPTION
    target = other_of(node)
    next(each for each in node.node.partitions.directories() if each.path == target).fail(OSError("broken"))
    assert ask_to_move(node, target) == ErrorCode.KAFKA_STORAGE_ERROR
    assert moves_of(node) == []


def test_a_replica_in_a_failed_directory_cannot_be_moved() -> None:
    node = with_records(1)
    source, target = path_of(node), other_of(node)
    next(each for each in node.node.partitions.directories() if each.path == source).fail(OSError("broken"))
    assert ask_to_move(node, target) == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("path", ["/one", "/two"])
def test_the_directory_of_a_replica_that_does_not_exist_yet_is_remembered(path: str) -> None:
    node = SimulatedNode(settings=TWO).start()
    assert ask_to_move(node, path, "new", 1) == ErrorCode.REPLICA_NOT_AVAILABLE
    node.create_topic("new", partitions=3)
    assert path_of(node, "new", 1) == path
    assert ask_to_move(node, path, "new", 1) == ErrorCode.NONE, "it is there already"
    assert moves_of(node) == []


def test_only_the_newest_wishes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.node.partitions.partitions.MOST_WISHES", 2)
    node = SimulatedNode(settings=TWO).start()
    for name in ("a", "b", "c"):
        ask_to_move(node, "/two", name)
    for name in ("c", "b", "a"):
        node.create_topic(name)
    assert (path_of(node, "b"), path_of(node, "c")) == ("/two", "/two")
    assert path_of(node, "a") == "/one", "the emptiest one"


def test_a_client_that_may_not_alter_the_cluster_moves_nothing() -> None:
    node = with_records(1)
    deny(node, (AclOperation.ALTER, "kafka-cluster"))
    assert ask_to_move(node, other_of(node)) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert moves_of(node) == []
