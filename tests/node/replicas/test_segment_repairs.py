"""A replica with a damaged segment: it does not serve the damaged batch, and copies it from another replica."""

import logging

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from quire.protocol.records import Record, build_batch
from quire.protocol.records.batch import HEADER_BYTES, walk_batches
from quire.storage.scanning.batch_scan import DamagedBatchError
from simulator.disk import SimDisk
from tests.node.replicas.consumers import fetch, values
from tests.node.replicas.replicated import TOPIC, Replicated

FOLDER = f"/data/{TOPIC}-0"
LETTERS = [bytes([65 + number]) * 50 for number in range(11)]
PER_SEGMENT = 3


def filled(topic_settings: dict[str, str] | None = None, *, cleaner_backoff_ms: int = 15_000) -> Replicated:
    """Nodes with a log of four segments, the last one active."""
    nodes = Replicated(topic_settings=topic_settings, log_cleaner_backoff_ms=str(cleaner_backoff_ms))
    nodes.until(lambda: all(node.partitions.of_topic(TOPIC) for node in nodes.nodes.values()))
    for first in range(0, len(LETTERS), PER_SEGMENT):
        for node_id in nodes.nodes:
            nodes.partition(node_id).log.roll(nodes.clock.now_ms())
        for value in LETTERS[first : first + PER_SEGMENT]:
            now_ms = nodes.clock.now_ms()
            nodes.leader().append(build_batch([Record(0, now_ms, value[:1], value)]), True, now_ms)
        nodes.until(nodes.is_whole)
    return nodes


def segments(disk: SimDisk) -> list[str]:
    return [f"{FOLDER}/{name}" for name in disk.list_dir(FOLDER) if name.endswith(".log")]


def flip(disk: SimDisk, offset: int, at: int = HEADER_BYTES + 20) -> None:
    """Flips a bit in the batch with the record at `offset`."""
    for path in segments(disk):
        for header in walk_batches(disk.peek(path)):
            if header.base_offset == offset:
                file = disk.open(path)
                (byte,) = file.pread(1, header.position + at)
                file.pwritev([bytes([byte ^ 4])], header.position + at)
                file.close()
                return
    raise AssertionError(f"{offset} is not there")


def lead(nodes: Replicated, node_id: int) -> None:
    """Lets the node lead: the others are stopped, one after the other, and started again."""
    while (leader := nodes.leader_node()) != node_id:
        nodes.stop(leader)
        nodes.until(nodes.has_leader)
        nodes.restart(leader)
        nodes.until(nodes.is_whole)


def damaged_follower(nodes: Replicated, *offsets: int, at: int = HEADER_BYTES + 20) -> int:
    """Stops a follower, damages these batches on its disk, and starts it again; returns its id."""
    follower = nodes.others(nodes.leader_node())[0]
    nodes.stop(follower)
    for offset in offsets:
        flip(nodes.disks[follower], offset, at)
    nodes.restart(follower)
    nodes.until(nodes.is_whole)
    return follower


def everything(nodes: Replicated, node_id: int) -> list[bytes | None]:
    """The values that a consumer reads if it retries after KAFKA_STORAGE_ERROR."""
    found: list[bytes | None] = []

    def more() -> bool:
        part = fetch(nodes, node_id, len(found))
        assert part.error_code in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)
        found.extend(values(part))
        return len(found) >= len(LETTERS)

    while not more():
        nodes.wait(50)
    return found


def log_bytes(nodes: Replicated, node_id: int) -> bytes:
    disk = nodes.disks[node_id]
    return b"".join(disk.peek(path) for path in segments(disk))


@pytest.mark.parametrize("at", [HEADER_BYTES + 20, 5, 9, 15], ids=["record", "offset", "length", "epoch"])
@pytest.mark.parametrize("offset", [0, 4, 10], ids=["first segment", "completed segment", "active segment"])
def test_a_damaged_batch_is_copied_from_another_replica(offset: int, at: int, caplog: pytest.LogCaptureFixture) -> None:
    nodes = filled()
    follower = damaged_follower(nodes, offset, at=at)
    with caplog.at_level(logging.WARNING, "quire.replicas"):
        assert everything(nodes, follower) == LETTERS
    assert f"damaged segment repaired partition={TOPIC}-0" in caplog.text
    others = nodes.others(follower)
    assert log_bytes(nodes, follower) == log_bytes(nodes, others[0]) == log_bytes(nodes, others[1])


def test_a_new_leader_repairs_itself_while_clients_write(caplog: pytest.LogCaptureFixture) -> None:
    nodes = filled()
    follower = damaged_follower(nodes, 1, 10)
    lead(nodes, follower)
    first = fetch(nodes, follower, 0)
    assert values(first) == LETTERS[:1], "what is before the damage is served"
    assert fetch(nodes, follower, 1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert values(fetch(nodes, follower, 4))[:2] == LETTERS[4:6], "and so is the rest"
    nodes.written(b"new")
    assert everything(nodes, follower) == [*LETTERS, b"new"]
    assert caplog.text.count("damaged segment repaired") == 2
    assert not nodes.nodes[follower].directories[0].failure


def test_a_bit_that_flips_under_a_running_follower_is_found_when_it_leads(caplog: pytest.LogCaptureFixture) -> None:
    nodes = filled()
    leader = nodes.leader_node()
    follower = nodes.others(leader)[0]
    for node_id in nodes.others(leader):
        flip(nodes.disks[node_id], 4)
    nodes.stop(leader)
    nodes.until(lambda: nodes.has_leader() and nodes.leader_node() != leader)
    follower = nodes.leader_node()
    assert fetch(nodes, follower, 4).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    nodes.restart(leader)
    assert everything(nodes, follower) == LETTERS
    assert f"sources={leader}" in caplog.text


@pytest.mark.parametrize("at", [5, 9], ids=["offset", "length"])
@pytest.mark.parametrize("offset", [9, 11], ids=["kept", "removed"])
def test_a_damaged_log_that_has_to_be_truncated(offset: int, at: int) -> None:
    nodes = filled()
    old = nodes.leader_node()
    name = nodes.isolate(old)
    assert nodes.settle(nodes.produce(b"lost", to=old, acks=1)) == ErrorCode.NONE
    nodes.until(lambda: nodes.leader_node() != old)
    nodes.written(b"new")
    flip(nodes.disks[old], offset, at)
    nodes.network.heal(name)
    nodes.until(nodes.is_whole)
    assert everything(nodes, old) == [*LETTERS, b"new"]
    assert log_bytes(nodes, 1) == log_bytes(nodes, 2) == log_bytes(nodes, 3)


def test_two_replicas_with_different_damage_in_one_segment_repair_each_other() -> None:
    nodes = filled()
    leader = nodes.leader_node()
    one, other = nodes.others(leader)
    for node_id, offset in ((one, 3), (other, 5)):
        nodes.stop(node_id)
        flip(nodes.disks[node_id], offset)
        nodes.restart(node_id)
        nodes.until(nodes.is_whole)
    nodes.stop(leader)
    nodes.until(lambda: nodes.has_leader() and nodes.leader_node() != leader)
    for node_id in (one, other):
        assert everything(nodes, node_id) == LETTERS
    assert log_bytes(nodes, one) == log_bytes(nodes, other) == log_bytes(nodes, leader)


def test_a_follower_that_catches_up_gets_what_its_leader_has_to_repair() -> None:
    nodes = filled()
    follower = damaged_follower(nodes, 4)
    lead(nodes, follower)
    behind = nodes.others(follower)[0]
    nodes.kill(behind)
    nodes.disks[behind].remove_tree(FOLDER)
    nodes.restart(behind)
    nodes.until(nodes.is_whole)
    assert values_of(nodes, behind) == LETTERS


def values_of(nodes: Replicated, node_id: int) -> list[bytes | None]:
    return everything(nodes, node_id)


def test_without_an_intact_replica_the_damage_stays_refused_until_there_is_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nodes = filled()
    leader = nodes.leader_node()
    for node_id in nodes.others(leader):
        nodes.stop(node_id)
        flip(nodes.disks[node_id], 4)
        nodes.restart(node_id)
        nodes.until(nodes.is_whole)
    nodes.stop(leader)
    nodes.until(lambda: nodes.has_leader() and nodes.leader_node() != leader)
    one, other = nodes.nodes
    for _ in range(10):
        for node_id in (one, other):
            assert fetch(nodes, node_id, 4).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert values(fetch(nodes, node_id, 3)) == LETTERS[3:4]
        nodes.wait(1_000)
    attempts = caplog.text.count("damaged segment not repaired")
    assert 4 <= attempts <= 20, "with longer and longer pauses"
    assert f"broker {other} cannot send offset 4: KAFKA_STORAGE_ERROR" in caplog.text
    nodes.restart(leader)
    assert everything(nodes, one) == everything(nodes, other) == LETTERS


def test_the_only_replica_of_a_partition_cannot_be_repaired() -> None:
    nodes = Replicated()
    nodes.create("alone", [1])
    leader = nodes.leader("alone").partition
    damage = DamagedBatchError(f"/data/alone-0/{0:020d}.log", 0, "damaged")
    assert nodes.nodes[1].replicas.repairs.damage_found(leader, damage) is damage


def test_a_source_that_cannot_be_reached_is_passed_over() -> None:
    nodes = filled()
    follower = damaged_follower(nodes, 4)
    leader = nodes.leader_node()
    nodes.network.partition("cut", [(f"node{follower}", f"node{leader}")])
    assert everything(nodes, follower) == LETTERS


def test_a_topic_that_is_deleted_during_a_repair() -> None:
    nodes = filled()
    follower = damaged_follower(nodes, 4)
    name = nodes.isolate(follower)
    assert fetch(nodes, follower, 4).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    nodes.wait(500)
    nodes.ask(
        nodes.leader_node(),
        DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=10_000),
        DeleteTopicsResponse,
        version=5,
    )
    nodes.network.heal(name)
    nodes.until(lambda: not list(nodes.nodes[follower].partitions.of_topic(TOPIC)))
    nodes.until(lambda: not nodes.nodes[follower].replicas.repairs.is_busy)
    assert not nodes.disks[follower].exists(FOLDER)


def test_a_node_that_stops_during_a_repair_leaves_the_damaged_segment() -> None:
    nodes = filled()
    follower = damaged_follower(nodes, 4)
    name = nodes.isolate(follower)
    assert fetch(nodes, follower, 4).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    nodes.until(lambda: any(each.endswith(".cleaned") for each in nodes.disks[follower].list_dir(FOLDER)))
    nodes.network.heal(name)
    nodes.stop(follower)
    assert not [each for each in nodes.disks[follower].list_dir(FOLDER) if each.endswith(".cleaned")]
    nodes.restart(follower)
    assert everything(nodes, follower) == LETTERS


def test_a_node_can_stop_while_a_repair_waits_for_another_replica() -> None:
    """Its links are closed then, which tells the repair that there is no answer."""
    nodes = filled()
    follower = damaged_follower(nodes, 4)
    name = nodes.isolate(follower)
    assert fetch(nodes, follower, 4).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    nodes.until(lambda: any(each.endswith(".cleaned") for each in nodes.disks[follower].list_dir(FOLDER)))
    nodes.stop(follower)
    assert not [each for each in nodes.disks[follower].list_dir(FOLDER) if each.endswith(".cleaned")]
    nodes.network.heal(name)
    nodes.restart(follower)
    assert everything(nodes, follower) == LETTERS


def test_damage_that_the_cleaner_finds_is_repaired_and_the_log_compacted(caplog: pytest.LogCaptureFixture) -> None:
    nodes = filled(
        {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"},
        cleaner_backoff_ms=30_000,
    )
    follower = damaged_follower(nodes, 4)
    nodes.until(lambda: "damaged segment repaired" in caplog.text)
    assert f"/data/{TOPIC}-0 will not be compacted" in caplog.text
    cleaned = nodes.nodes[follower].directories[0].cleaned_offsets
    nodes.until(lambda: (cleaned.get((TOPIC, 0)) or 0) == 9)
    assert everything(nodes, follower) == LETTERS
