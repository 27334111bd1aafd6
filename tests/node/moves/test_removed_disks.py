"""A disk that does not return: its partitions are on the other disks of the broker, copied from their leaders."""

import pytest

from quire.protocol.errors import ErrorCode
from tests.node.conftest import SimulatedNode
from tests.node.moves.moving import TWO, path_of, produce, values_of
from tests.node.replicas.replicated import Replicated

APART = {"metadata.log.dir": "/meta"}


def in_directory(node: SimulatedNode, path: str) -> int:
    """The partition of `t` that is there."""
    return next(index for index in (0, 1) if path_of(node, index=index) == path)


@pytest.mark.parametrize("way", ["removed from log.dirs", "replaced by an empty one"])
def test_without_another_replica_the_partitions_on_it_are_empty(way: str) -> None:
    node = SimulatedNode(settings=TWO | APART).start()
    node.create_topic("t", 2)
    for index in (0, 1):
        assert produce(node, b"v", index=index) == ErrorCode.NONE
    kept, lost = in_directory(node, "/one"), in_directory(node, "/two")
    disk = node.stop()
    disk.remove_tree("/two")
    settings = APART | ({"log.dirs": "/one"} if way == "removed from log.dirs" else TWO)
    again = SimulatedNode(disk, settings, seed=2).start()
    if way != "removed from log.dirs":
        again.clock.run_for(10_000)
        assert produce(again, index=lost) != ErrorCode.NONE, "it may not be mounted"
        again = SimulatedNode(again.stop(), settings, seed=3).start()
    again.clock.run_for(10_000)
    assert produce(again, b"new", index=kept) == ErrorCode.NONE
    assert produce(again, b"new", index=lost) == ErrorCode.NONE
    assert values_of(again, index=kept) == [b"v", b"new"]
    assert values_of(again, index=lost) == [b"new"]


def test_other_replicas_have_everything_and_are_copied() -> None:
    nodes = Replicated(min_isr=2, log_dirs="/one,/two", metadata_log_dir="/meta", broker_session_timeout_ms="2000")
    nodes.written(b"0", b"1", b"2")
    nodes.until(nodes.is_whole)
    broker = nodes.leader_node()
    lost = nodes.nodes[broker].partitions.directory_of(nodes.partition(broker)).path
    nodes.stop(broker)
    nodes.disks[broker].remove_tree(lost)
    kept = next(path for path in ("/one", "/two") if path != lost)
    nodes.override[broker] = {"log.dirs": kept}
    nodes.written(b"3")
    nodes.restart(broker)
    nodes.until(nodes.is_whole)
    assert nodes.nodes[broker].partitions.directory_of(nodes.partition(broker)).path == kept
    assert nodes.values(broker) == [b"0", b"1", b"2", b"3"]
