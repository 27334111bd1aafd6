"""The copy of a log follows its truncations, and gets batches that were damaged once they are repaired."""

from functools import partial

import pytest

from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.range_check import read_checked
from tests.node.moves.replicated_moves import is_moving, move, numbered, path_of, replicated
from tests.node.replicas.replicated import TOPIC


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
