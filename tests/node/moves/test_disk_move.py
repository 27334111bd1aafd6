"""Replicas that follow, and replicas whose log is truncated or damaged, move without losing anything."""

from functools import partial

import pytest

from quire.node.moves.disk_moves import RATE
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.range_check import read_checked
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


def test_leaders_and_followers_move_while_they_are_written_to() -> None:
    nodes = replicated()
    nodes.written(*numbered(0, 10))
    targets = {node_id: move(nodes, node_id) for node_id in (1, 2, 3)}
    nodes.written(*numbered(10, 30))
    nodes.until(lambda: not any(is_moving(nodes, node_id) for node_id in (1, 2, 3)))
    nodes.written(*numbered(30, 35))
    nodes.until(nodes.is_whole)
    for node_id, target in targets.items():
        assert path_of(nodes, node_id) == target
        assert nodes.values(node_id) == numbered(0, 35)
    assert len({nodes.content(node_id) for node_id in (1, 2, 3)}) == 1
    assert nodes.isr() == {1, 2, 3}


def test_what_a_replica_truncates_is_truncated_in_its_copy() -> None:
    """It led, and wrote records that no other replica had; another one leads since, and wrote others."""
    nodes = replicated()
    nodes.written(*numbered(0, 10))
    nodes.until(nodes.is_whole)
    old = nodes.leader_node()
    name = nodes.isolate(old)
    for number in range(100, 110):
        nodes.produce(b"%03d" % number, to=old, acks=1)
    nodes.until(lambda: nodes.partition(old).log.end_offset == 20)
    target = move(nodes, old)
    (moving,) = list(nodes.nodes[old].moves)
    nodes.until(lambda: moving.copy.end_offset == 20)
    nodes.until(lambda: nodes.leader_node() != old)
    nodes.written(*numbered(10, 13))
    nodes.network.heal(name)
    nodes.until(lambda: not is_moving(nodes, old))
    nodes.until(nodes.is_whole)
    assert (path_of(nodes, old), nodes.values(old)) == (target, numbered(0, 13))
    assert nodes.content(old) == nodes.content(nodes.leader_node())


def test_a_copy_that_missed_a_truncation_before_a_restart_is_truncated_when_the_move_goes_on() -> None:
    nodes = replicated(rate=400)
    nodes.written(*numbered(0, 10))
    nodes.until(nodes.is_whole)
    old = nodes.leader_node()
    name = nodes.isolate(old)
    for number in range(100, 110):
        nodes.produce(b"%03d" % number, to=old, acks=1)
    nodes.until(lambda: nodes.partition(old).log.end_offset == 20)
    target = move(nodes, old)
    (moving,) = list(nodes.nodes[old].moves)
    nodes.until(lambda: 14 <= moving.copy.end_offset < 20)
    nodes.kill(old)
    nodes.until(lambda: nodes.has_leader() and nodes.leader_node() != old)
    nodes.written(*numbered(10, 13))
    nodes.network.heal(name)
    nodes.restart(old)
    nodes.until(lambda: not is_moving(nodes, old))
    nodes.until(nodes.is_whole)
    assert (path_of(nodes, old), nodes.values(old)) == (target, numbered(0, 13))


def test_a_damaged_batch_is_repaired_before_the_move_goes_on() -> None:
    nodes = replicated()
    nodes.written(*numbered(0, 20))
    nodes.until(nodes.is_whole)
    follower = nodes.others(nodes.leader_node())[0]
    nodes.stop(follower)
    folder = next(path for path in ("/one", "/two") if nodes.disks[follower].is_dir(f"{path}/{TOPIC}-0"))
    first = next(name for name in nodes.disks[follower].list_dir(f"{folder}/{TOPIC}-0") if name.endswith(".log"))
    nodes.disks[follower].flip(f"{folder}/{TOPIC}-0/{first}", 70, 3)
    nodes.restart(follower)
    target = move(nodes, follower)
    nodes.until(lambda: not is_moving(nodes, follower))
    assert (path_of(nodes, follower), nodes.values(follower)) == (target, numbered(0, 20))


def test_damage_that_a_reader_finds_is_repaired_although_the_move_takes_long() -> None:
    nodes = replicated(rate=10)
    nodes.written(*numbered(0, 30))
    nodes.until(nodes.is_whole)
    follower = nodes.others(nodes.leader_node())[0]
    nodes.stop(follower)
    folder = next(path for path in ("/one", "/two") if nodes.disks[follower].is_dir(f"{path}/{TOPIC}-0"))
    logs = [name for name in nodes.disks[follower].list_dir(f"{folder}/{TOPIC}-0") if name.endswith(".log")]
    nodes.disks[follower].flip(f"{folder}/{TOPIC}-0/{logs[3]}", 70, 3)
    nodes.restart(follower)
    target = move(nodes, follower)
    partition = nodes.partition(follower)
    with pytest.raises(DamagedBatchError) as caught:
        read_checked(partial(partition.log.read, partition.log.segments[3].base_offset, 1 << 20))
    partition.damage_error(caught.value)
    repairs = nodes.nodes[follower].replicas.repairs
    nodes.until(lambda: not repairs.is_busy)
    assert is_moving(nodes, follower)
    assert nodes.values(follower) == numbered(0, 30)
    nodes.until(lambda: not is_moving(nodes, follower), 600_000)
    assert (path_of(nodes, follower), nodes.values(follower)) == (target, numbered(0, 30))


def test_a_replica_that_is_taken_away_stops_its_move() -> None:
    nodes = replicated(rate=100)
    nodes.written(*numbered(0, 10))
    nodes.until(nodes.is_whole)
    follower = nodes.others(nodes.leader_node())[0]
    target = move(nodes, follower)
    assert is_moving(nodes, follower)
    directory = nodes.nodes[follower].partitions.directory_of(nodes.partition(follower))
    directory.fail(OSError("broken"))
    assert not is_moving(nodes, follower)
    nodes.written(*numbered(10, 12))
    nodes.stop(follower)
    nodes.restart(follower)
    nodes.until(lambda: not is_moving(nodes, follower))
    nodes.until(nodes.is_whole)
    assert (path_of(nodes, follower), nodes.values(follower)) == (target, numbered(0, 12))
