"""At a start after a crash at the end of a move: which of two logs is used, and when none may be."""

import errno

import pytest

from quire.node.moves.disk_move import DiskMove
from quire.node.moves.move_state import MoveState
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Record, build_batch, read_header
from quire.storage import Log
from simulator.disk import SimDisk
from tests.node.conftest import SimulatedNode
from tests.node.moves.moving import (
    TWO,
    ask_to_move,
    folders,
    is_quiet,
    moves_of,
    other_of,
    partition_of,
    path_of,
    produce,
    values_of,
    with_records,
)

SETTINGS = TWO | {"metadata.log.dir": "/meta"}


def moving_in(state: MoveState) -> tuple[SimulatedNode, DiskMove]:
    """A node whose move has come so far."""
    node = with_records(5, SETTINGS)
    assert ask_to_move(node, other_of(node)) == ErrorCode.NONE
    (move,) = moves_of(node)
    node.clock.run_until(lambda: move.state is state)
    return node, move


def killed_in(state: MoveState) -> tuple[SimDisk, str, str]:
    """Its disk, with a log in two directories, and the paths of the original and of the copy."""
    node, move = moving_in(state)
    return node.disk.kill(), move.source.path, move.target.path


def write_to(log: Log, node: SimulatedNode) -> None:
    batch = build_batch([Record(0, 1, b"k", b"more")])
    log.append(batch, [read_header(batch)], 0, node.clock.now_ms())


def both_logs(disk: SimDisk) -> bool:
    return folders(disk, "/one") == folders(disk, "/two") == ["t-0"]


def test_the_copy_is_used_if_both_have_the_same() -> None:
    disk, source, target = killed_in(MoveState.DECIDING)
    assert both_logs(disk)
    again = SimulatedNode(disk, SETTINGS, seed=2).start()
    assert (path_of(again), len(values_of(again))) == (target, 5)
    again.clock.run_until(lambda: is_quiet(again))
    again.clock.run_for(120_000)
    assert folders(again.disk, source) == []
    assert produce(again) == ErrorCode.NONE


def test_the_original_is_used_if_it_is_longer_and_the_replica_moves_again() -> None:
    node, move = moving_in(MoveState.PLACING)
    node.clock.run_until(lambda: node.disk.is_dir(f"{move.target.path}/t-0"))
    write_to(partition_of(node).log, node)
    disk = node.disk.kill()
    assert both_logs(disk)
    again = SimulatedNode(disk, SETTINGS, seed=2).start()
    assert (path_of(again), values_of(again)[-1]) == (move.source.path, b"more")
    again.clock.run_until(lambda: is_quiet(again))
    assert (path_of(again), values_of(again)[-1]) == (move.target.path, b"more")


def test_a_copy_that_decides_is_used_although_the_original_is_longer() -> None:
    node, move = moving_in(MoveState.DECIDING)
    write_to(move.original, node)
    node.clock.run_until(lambda: move.state is MoveState.LEAVING)
    disk = node.disk.kill()
    assert both_logs(disk)
    again = SimulatedNode(disk, SETTINGS, seed=2).start()
    assert (path_of(again), len(values_of(again))) == (move.target.path, 5)


def test_records_that_were_deleted_in_one_log_do_not_come_back_with_the_other() -> None:
    node, move = moving_in(MoveState.PLACING)
    done: list[bool] = []
    move.source.delete_records("t", 0, 3, lambda: done.append(True))
    node.clock.run_until(lambda: bool(done) and node.disk.is_dir(f"{move.target.path}/t-0"))
    assert move.copy.start_offset == 0
    disk = node.disk.kill()
    again = SimulatedNode(disk, SETTINGS, seed=2).start()
    again.clock.run_until(lambda: is_quiet(again))
    assert (path_of(again), partition_of(again).log.start_offset) == (move.target.path, 3)


@pytest.mark.parametrize("fails", ["source", "target"])
def test_a_log_stays_offline_while_the_directory_of_the_other_one_cannot_be_used(fails: str) -> None:
    disk, source, target = killed_in(MoveState.DECIDING)
    broken = source if fails == "source" else target
    disk.fail_when(lambda call: call.path.startswith(broken), errno.EIO, times=1 << 30)
    without = SimulatedNode(disk, SETTINGS, seed=2).start()
    without.clock.run_for(10_000)
    with pytest.raises(ApiError) as caught:
        without.node.partitions.leader("t", None, 0)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    healed = without.stop()
    healed.calls.forget_faults()
    again = SimulatedNode(healed, SETTINGS, seed=3).start()
    assert len(values_of(again)) == 5
    again.clock.run_until(lambda: is_quiet(again))
    assert path_of(again) == target


@pytest.mark.parametrize("state", [MoveState.DECIDING, MoveState.LEAVING])
def test_a_log_is_used_when_the_directory_of_the_other_one_is_taken_out_of_log_dirs(state: MoveState) -> None:
    disk, _, target = killed_in(state)
    again = SimulatedNode(disk, SETTINGS | {"log.dirs": target}, seed=2).start()
    assert (path_of(again), len(values_of(again))) == (target, 5)


def test_a_copy_that_decides_is_used_while_the_directory_of_the_original_cannot_be_used() -> None:
    disk, source, target = killed_in(MoveState.LEAVING)
    disk.fail_when(lambda call: call.path.startswith(source), errno.EIO, times=1 << 30)
    again = SimulatedNode(disk, SETTINGS, seed=2).start()
    assert (path_of(again), len(values_of(again))) == (target, 5)
    assert produce(again, b"more") == ErrorCode.NONE
    healed = again.stop()
    healed.calls.forget_faults()
    last = SimulatedNode(healed, SETTINGS, seed=3).start()
    assert (path_of(last), values_of(last)[-1]) == (target, b"more")


def test_a_copy_whose_original_is_gone_is_kept_as_a_stray_log() -> None:
    disk, source, target = killed_in(MoveState.READYING)
    disk.remove_tree(f"{source}/t-0")
    again = SimulatedNode(disk, SETTINGS, seed=2).start()
    again.clock.run_for(120_000)
    assert [name for name in folders(again.disk, target) if name.endswith("-stray")] != []
    assert values_of(again) == []


def test_a_copy_of_a_topic_that_was_deleted_is_removed() -> None:
    disk, _, target = killed_in(MoveState.READYING)
    (name,) = folders(disk, target)
    file = disk.open(f"{target}/{name}/partition.metadata")
    file.pwritev([b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAEQ"], 0)
    again = SimulatedNode(disk, SETTINGS, seed=2).start()
    assert moves_of(again) == []
    again.clock.run_for(120_000)
    assert (folders(again.disk, target), len(values_of(again))) == ([], 5)
