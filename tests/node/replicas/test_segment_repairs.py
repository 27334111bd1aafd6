"""A replica with a damaged segment: what is damaged is not served, and comes from another replica."""

import logging

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.records.batch import HEADER_BYTES, walk_batches
from simulator.disk import SimDisk
from tests.node.replicas.replicated import TOPIC, Replicated
from tests.node.replicas.test_reading_from_followers import fetch, values

FOLDER = f"/data/{TOPIC}-0"
LETTERS = [bytes([65 + number]) * 50 for number in range(11)]
PER_SEGMENT = 3


def filled(**settings: str) -> Replicated:
    """Nodes with a log of four segments, the last one active."""
    nodes = Replicated(topic_settings=settings, log_cleaner_backoff_ms="100")
    for first in range(0, len(LETTERS), PER_SEGMENT):
        for node_id in nodes.nodes:
            nodes.partition(node_id).log.roll(nodes.clock.now_ms())
        nodes.written(*LETTERS[first : first + PER_SEGMENT])
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
    """Lets the node lead; those that were killed for that are started again."""
    killed = []
    while (leader := nodes.leader_node()) != node_id:
        epoch = nodes.leader().leader_epoch
        nodes.stop(leader)
        killed.append(leader)
        nodes.until(lambda: nodes.has_leader() and nodes.leader().leader_epoch > epoch)
        if len(killed) == 2:
            break
        nodes.restart(leader)
        nodes.until(nodes.is_whole)
    assert nodes.leader_node() == node_id


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
    """What a consumer reads that retries as long as it gets KAFKA_STORAGE_ERROR."""
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
def test_a_damaged_batch_is_copied_from_another_replica(
    offset: int, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = filled()
    follower = damaged_follower(nodes, offset, at=at)
    with caplog.at_level(logging.WARNING, "quire.replicas"):
        assert everything(nodes, follower) == LETTERS
    assert f"damaged segment repaired partition={TOPIC}-0" in caplog.text
    others = nodes.others(follower)
    assert log_bytes(nodes, follower) == log_bytes(nodes, others[0]) == log_bytes(nodes, others[1])
