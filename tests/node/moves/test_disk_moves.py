"""Replicas move between the data directories of a node that serves."""

import errno

import pytest

from quire.node.moves.disk_moves import RATE
from quire.node.moves.move_state import MoveState
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from quire.protocol.records import Record, build_batch
from simulator.random import SimRandom
from tests.node.conftest import SimulatedNode
from tests.node.moves.moving import (
    TWO,
    ask_to_move,
    content,
    described,
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

THREE = {"log.dirs": "/one,/two,/three"}


def test_a_replica_moves_with_every_byte_and_serves_from_there() -> None:
    node = with_records(50, internal_segment_bytes="1024")
    before, source, target = content(node), path_of(node), other_of(node)
    bases = [segment.base_offset for segment in partition_of(node).log.segments]
    assert len(bases) > 3
    assert ask_to_move(node, target) == ErrorCode.NONE
    node.clock.run_until(lambda: is_quiet(node))
    assert (path_of(node), content(node)) == (target, before)
    assert [segment.base_offset for segment in partition_of(node).log.segments] == bases
    assert produce(node, b"after") == 0
    assert values_of(node)[-2:] == [b"v49", b"after"]
    node.clock.run_for(120_000)
    assert folders(node.disk, source) == []
    assert folders(node.disk, target) == ["t-0"]
    assert "quire-move" not in node.disk.list_dir(f"{target}/t-0")
    assert directories_in_image(node) == [node.node.partitions.directory_id_of(partition_of(node).topic_id, 0)]
    again = SimulatedNode(node.stop(), TWO, seed=2).start()
    assert (path_of(again), content(again)[: len(before)]) == (target, before)
    assert values_of(again)[-1] == b"after"


def delete_before(node: SimulatedNode, offset: int) -> None:
    wanted = [DeleteRecordsPartition(partition_index=0, offset=offset)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=wanted)], timeout_ms=1000)
    assert node.call(request, 2, DeleteRecordsResponse).topics[0].partitions[0].low_watermark == offset


def append_as(node: SimulatedNode, producer_id: int) -> None:
    """The first batch of an idempotent producer."""
    batch = build_batch([Record(0, 1, b"k", b"v")], producer_id=producer_id, producer_epoch=0, base_sequence=0)
    node.node.partitions.leader("t", None, 0).append(batch, True, node.clock.now_ms())


def directories_in_image(node: SimulatedNode) -> list[bytes]:
    return list(node.node.image.topics_by_name["t"].partitions[0].directories)


def slowed(**topic: str) -> SimulatedNode:
    """Copying takes seconds: a portion is 16 KB, and there are a few of them."""
    node = with_records(0, {RATE: "65536"}, **topic)
    for number in range(16):
        assert produce(node, b"%02d" % number + bytes(16_000)) == ErrorCode.NONE
    return node


def halfway(node: SimulatedNode) -> None:
    """Runs until a part is copied."""
    (move,) = moves_of(node)
    node.clock.run_until(lambda: move.copy.end_offset >= 4)
    assert move.copy.end_offset < 14


def test_a_move_keeps_to_its_rate_and_shows_how_far_it_is() -> None:
    node = slowed()
    source, target = path_of(node), other_of(node)
    began_ms = node.clock.monotonic_ms()
    ask_to_move(node, target)
    halfway(node)
    (future,) = described(node)[target]
    assert future[:2] == ("t", 0) and 0 < future[2] <= 12 and future[3]
    assert described(node)[source] == [("t", 0, 0, False)]
    node.clock.run_until(lambda: is_quiet(node))
    assert 3_500 < node.clock.monotonic_ms() - began_ms < 4_500, "256 KB at 64 KB a second"
    assert described(node) == {source: [], target: [("t", 0, 0, False)]}


def test_a_move_is_cancelled_by_one_to_where_the_replica_is() -> None:
    node = slowed()
    source, target = path_of(node), other_of(node)
    ask_to_move(node, target)
    halfway(node)
    assert ask_to_move(node, source) == ErrorCode.NONE
    assert moves_of(node) == []
    node.clock.run_for(120_000)
    assert (path_of(node), folders(node.disk, target)) == (source, [])
    ask_to_move(node, target)
    node.clock.run_until(lambda: is_quiet(node))
    assert path_of(node) == target


def test_a_second_request_replaces_the_first() -> None:
    node = slowed()
    again = SimulatedNode(node.stop(), THREE | {RATE: "65536"}, seed=2).start()
    source = path_of(again)
    ask_to_move(again, other_of(again))
    halfway(again)
    ask_to_move(again, "/three")
    assert [move.target.path for move in moves_of(again)] == ["/three"]
    again.clock.run_until(lambda: is_quiet(again))
    again.clock.run_for(120_000)
    assert (path_of(again), folders(again.disk, source), folders(again.disk, other_of(again))) == ("/three", [], [])


@pytest.mark.parametrize("cleanly", [True, False])
def test_a_move_goes_on_after_a_restart(cleanly: bool) -> None:
    node = slowed()
    before, target = content(node), other_of(node)
    ask_to_move(node, target)
    halfway(node)
    (folder,) = folders(node.disk, target)
    again = SimulatedNode(node.stop() if cleanly else node.disk.kill(), TWO | {RATE: "65536"}, seed=2).start()
    (move,) = moves_of(again)
    assert move.copy.end_offset >= 4, "what was copied is used"
    assert folders(again.disk, target) == [folder]
    again.clock.run_until(lambda: is_quiet(again))
    assert (path_of(again), content(again)) == (target, before)


def test_only_so_many_replicas_are_copied_at_a_time() -> None:
    node = SimulatedNode(settings=TWO | {"num.replica.alter.log.dirs.threads": "2"}).start()
    node.create_topic("t", partitions=10)
    for index in range(10):
        assert ask_to_move(node, "/two" if path_of(node, index=index) == "/one" else "/one", index=index) == 0
    assert [move.state for move in moves_of(node)].count(MoveState.WAITING) == len(moves_of(node)) - 2
    node.clock.run_until(lambda: is_quiet(node))


def test_a_deleted_topic_takes_its_copy_with_it() -> None:
    node = slowed()
    target = other_of(node)
    ask_to_move(node, target)
    halfway(node)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])
    assert node.call(request, 6, DeleteTopicsResponse).responses[0].error_code == 0
    assert moves_of(node) == []
    node.clock.run_for(120_000)
    assert folders(node.disk, "/one") + folders(node.disk, "/two") == []


def test_records_that_are_deleted_meanwhile_are_deleted_in_the_copy() -> None:
    node = slowed(internal_segment_bytes="40000")
    target = other_of(node)
    ask_to_move(node, target)
    halfway(node)
    delete_before(node, 10)
    node.clock.run_until(lambda: is_quiet(node))
    log = partition_of(node).log
    assert (log.start_offset, log.end_offset) == (10, 16)
    assert [value[:2] for value in values_of(node) if value] == [b"%d" % number for number in range(10, 16)]
    again = SimulatedNode(node.disk.crash(SimRandom(3)), TWO, seed=2).start()
    assert partition_of(again).log.start_offset == 10


def test_the_controller_is_told_before_the_replica_moves() -> None:
    node = with_records(3)
    source, target = path_of(node), other_of(node)
    node.node.metadata.leader_changed(None, 98)
    ask_to_move(node, target)
    node.clock.run_for(5_000)
    (move,) = moves_of(node)
    assert (move.state, path_of(node)) == (MoveState.ANNOUNCED, source)
    assert produce(node, b"meanwhile") == ErrorCode.NONE
    node.node.metadata.leader_changed(1, 99)
    node.clock.run_until(lambda: is_quiet(node))
    assert (path_of(node), values_of(node)) == (target, [b"v0", b"v1", b"v2", b"meanwhile"])


def test_a_move_that_is_cancelled_after_it_was_announced_is_taken_back() -> None:
    node = with_records(3)
    source, target = path_of(node), other_of(node)
    ask_to_move(node, target)
    (move,) = moves_of(node)
    node.clock.run_until(lambda: move.state is MoveState.PLACING)
    ask_to_move(node, source)
    node.clock.run_until(lambda: is_quiet(node))
    assert path_of(node) == source
    own = node.node.partitions.directory_of(partition_of(node)).meta
    assert own is not None
    node.clock.run_until(lambda: directories_in_image(node) == [own.directory_id])
    node.clock.run_for(120_000)
    assert folders(node.disk, target) == []
    assert "quire-move" not in node.disk.list_dir(f"{source}/t-0")
    again = SimulatedNode(node.disk.kill(), TWO, seed=2).start()
    assert (path_of(again), values_of(again)) == (source, [b"v0", b"v1", b"v2"])


@pytest.mark.parametrize("state", [MoveState.COPYING, MoveState.ANNOUNCED, MoveState.READYING, MoveState.PLACING])
def test_a_target_that_fails_costs_nothing(state: MoveState) -> None:
    node = slowed() if state is MoveState.COPYING else with_records(16)
    before, source, target = content(node), path_of(node), other_of(node)
    ask_to_move(node, target)
    (move,) = moves_of(node)
    node.clock.run_until(lambda: move.state is state)
    move.target.fail(OSError("broken"))
    assert moves_of(node) == []
    assert produce(node, b"after") == ErrorCode.NONE or state is not MoveState.COPYING
    node.clock.run_for(10_000)
    assert produce(node, b"later") == ErrorCode.NONE
    assert path_of(node) == source
    again = SimulatedNode(node.disk.kill(), TWO, seed=2).start()
    assert content(again).startswith(before)
    assert values_of(again)[-1] == b"later"
    again.clock.run_until(lambda: is_quiet(again))
    assert values_of(again)[-1] == b"later"
    assert path_of(again) == target, "the disk works again, and the move goes on"


@pytest.mark.parametrize("fails", ["write", "create"])
def test_a_full_target_pauses_the_move(fails: str) -> None:
    node = slowed()
    target = other_of(node)
    ask_to_move(node, target)
    halfway(node)
    room: list[str] = []
    node.disk.fail_when(
        lambda call: call.path.startswith(f"{target}/t-0.") and call.kind == fails and not room, errno.ENOSPC, times=99
    )
    node.clock.run_for(60_000)
    if fails == "write":
        assert [move.state for move in moves_of(node)] == [MoveState.COPYING]
    assert produce(node, b"after") == ErrorCode.NONE
    room.append("again")
    node.clock.run_until(lambda: is_quiet(node), 200_000)
    assert (path_of(node), values_of(node)[-1]) == (target, b"after")


def test_a_producer_is_known_after_a_move_although_its_records_are_deleted() -> None:
    node = with_records(0, internal_segment_bytes="40000")
    append_as(node, 7)
    for number in range(16):
        assert produce(node, b"%02d" % number + bytes(16_000)) == ErrorCode.NONE
    delete_before(node, 10)
    target = other_of(node)
    ask_to_move(node, target)
    node.clock.run_until(lambda: is_quiet(node))
    assert partition_of(node).log.producer_state.get(7) is not None
    again = SimulatedNode(node.disk.kill(), TWO, seed=2).start()
    assert (path_of(again), partition_of(again).log.start_offset) == (target, 10)
    assert partition_of(again).log.producer_state.get(7) is not None


def test_compaction_waits_for_the_move() -> None:
    node = slowed(cleanup_policy="compact", internal_segment_bytes="40000", min_cleanable_dirty_ratio="0.0")
    target = other_of(node)
    ask_to_move(node, target)
    before = content(node)
    node.clock.run_until(lambda: is_quiet(node))
    assert content(node) == before
    node.clock.run_for(180_000)
    assert len(content(node)) < len(before), "it is compacted where it is now"


def test_a_log_whose_last_batches_are_compacted_away_moves() -> None:
    node = with_records(3, cleanup_policy="compact")
    log = partition_of(node).log
    log.skip_to(10, node.clock.now_ms())
    target = other_of(node)
    ask_to_move(node, target)
    node.clock.run_until(lambda: is_quiet(node))
    assert (path_of(node), partition_of(node).log.end_offset) == (target, 10)
    again = SimulatedNode(node.stop(), TWO, seed=2).start()
    assert (path_of(again), partition_of(again).log.end_offset) == (target, 10)
