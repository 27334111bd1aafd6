"""Replicas that move to other brokers, on four simulated nodes: what they copy, who commits, what is deleted."""

from collections.abc import Sequence

import pytest

from quire.metadata.partition_image import PartitionImage
from quire.node.partitions import log_placement
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.node.replicas.replicated import TOPIC, Replicated
from tests.node.replicas.test_replication import numbered
from tests.node.sim_nodes import BOTH

FOLDER = f"{TOPIC}-0"


class Moving(Replicated):
    """Four brokers. The partition is on the first three."""

    def __init__(self, *, min_isr: int = 2, roles: Sequence[str] = (BOTH,) * 4) -> None:
        super().__init__(roles, min_isr=min_isr)

    def reassign(self, replicas: Sequence[int] | None, *, by: int = 2) -> ErrorCode:
        wanted = ReassignablePartition(partition_index=0, replicas=None if replicas is None else list(replicas))
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=20_000, topics=[ReassignableTopic(name=TOPIC, partitions=[wanted])]
        )
        response = self.ask(by, request, AlterPartitionReassignmentsResponse)
        assert response.error_code == ErrorCode.NONE
        return ErrorCode(response.responses[0].partitions[0].error_code)

    def image(self, node_id: int = 2) -> PartitionImage:
        return self.nodes[node_id].image.topics_by_name[TOPIC].partitions[0]

    def is_reassigned(self, *replicas: int) -> bool:
        """Whether every node knows that these are all the replicas, each in sync, and no other node has one."""
        images = [self.image(each) for each in self.nodes]
        holders = {each for each, node in self.nodes.items() if TOPIC in {held.topic for held in node.partitions}}
        return holders == set(replicas) and all(
            each.replicas == replicas and set(each.isr) == set(replicas) and not each.is_reassigning for each in images
        )

    def folders(self, node_id: int) -> list[str]:
        return [name for name in self.disks[node_id].list_dir("/data") if name.startswith(f"{TOPIC}-")]


def test_a_new_replica_copies_everything_and_the_old_one_deletes_its_log() -> None:
    nodes = Moving()
    nodes.written(*numbered(0, 20))
    assert nodes.reassign([2, 3, 4]) == ErrorCode.NONE
    nodes.until(lambda: nodes.is_reassigned(2, 3, 4))
    assert nodes.leader_node() == 2
    nodes.written(*numbered(20, 30))
    nodes.until(lambda: nodes.partition(4).high_watermark == 30)
    assert nodes.values(4) == nodes.values(2) == numbered(0, 30)
    assert FOLDER not in nodes.folders(1)
    for _ in range(2):
        nodes.wait(31_000)  # file.delete.delay.ms
    assert nodes.folders(1) == []


def test_writes_that_wait_when_their_leader_is_removed_are_sent_again_to_the_next_one() -> None:
    nodes = Moving()
    nodes.written(*numbered(0, 5))
    isolated = [nodes.isolate(each, one_way=True) for each in (2, 3)]
    waiting = nodes.produce(b"waits", to=1, timeout_ms=60_000)
    for each in isolated:
        nodes.network.heal(each)
    assert nodes.reassign([2, 3, 4]) == ErrorCode.NONE
    nodes.until(lambda: nodes.is_reassigned(2, 3, 4))
    nodes.until(lambda: waiting.done)
    assert waiting.value in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert nodes.settle(nodes.produce(b"after", to=1)) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_replica_that_is_being_added_does_not_count_before_it_is_in_sync() -> None:
    nodes = Moving(roles=["broker"] * 4 + ["controller"])
    nodes.written(*numbered(0, 5))
    for each in (2, 3):
        nodes.kill(each)
    nodes.until(lambda: nodes.isr() == {1})
    isolated = nodes.isolate(4)
    assert nodes.reassign([1, 4], by=1) == ErrorCode.NONE
    nodes.until(lambda: nodes.image(1).adding_replicas == (4,))
    assert nodes.settle(nodes.produce(b"x", to=1)) == ErrorCode.NOT_ENOUGH_REPLICAS
    nodes.network.heal(isolated)
    nodes.until(lambda: nodes.isr() == {1, 4})
    nodes.written(*numbered(5, 6))


def test_metadata_shows_new_and_old_replicas_meanwhile() -> None:
    nodes = Moving()
    nodes.kill(4)
    nodes.until(lambda: not nodes.nodes[2].image.brokers[4].is_active)
    assert nodes.reassign([4, 2]) == ErrorCode.NONE
    nodes.until(lambda: nodes.image(3).is_reassigning)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    (partition,) = nodes.ask(3, request, MetadataResponse).topics[0].partitions
    assert (partition.replica_nodes, sorted(partition.isr_nodes)) == ([4, 2, 1, 3], [1, 2, 3])
    assert partition.offline_replicas == [4]


def test_a_broker_that_was_down_deletes_the_replica_that_it_lost_meanwhile() -> None:
    nodes = Moving()
    nodes.written(*numbered(0, 10))
    nodes.until(lambda: nodes.partition(1).high_watermark == 10)
    nodes.kill(1)
    assert nodes.reassign([2, 3]) == ErrorCode.NONE
    nodes.until(lambda: nodes.is_reassigned(2, 3))
    assert nodes.folders(1) == [FOLDER]
    nodes.restart(1)
    nodes.until(lambda: nodes.is_reassigned(2, 3) and 1 in nodes.nodes)
    assert [name.rpartition("-")[2] for name in nodes.folders(1)] == ["delete"]


def test_a_broker_that_was_down_keeps_the_replica_that_it_lost_and_got_again() -> None:
    nodes = Moving()
    nodes.written(*numbered(0, 10))
    nodes.until(lambda: nodes.partition(1).high_watermark == 10)
    nodes.kill(1)
    for replicas in ([2, 3], [2, 3, 1]):
        assert nodes.reassign(replicas) == ErrorCode.NONE
        nodes.until(lambda replicas=tuple(replicas): nodes.image().replicas == replicas)  # type: ignore[misc]
    nodes.written(*numbered(10, 12))
    nodes.restart(1)
    nodes.until(lambda: nodes.is_reassigned(2, 3, 1))
    assert nodes.folders(1) == [FOLDER]
    assert nodes.values(1) == numbered(0, 12)


def test_a_log_with_a_later_leader_epoch_than_the_metadata_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata may have been restored from an old copy, and this log may be the only one with its records."""
    nodes = Moving()
    nodes.written(*numbered(0, 10))
    nodes.kill(1)
    assert nodes.reassign([2, 3]) == ErrorCode.NONE
    nodes.until(lambda: nodes.is_reassigned(2, 3))
    was_reassigned = log_placement._was_reassigned

    def with_older_metadata(image: object, directory: object, *which: object) -> bool:
        partitions = image.topics_by_name[TOPIC].partitions  # type: ignore[attr-defined]
        before, partitions[0] = partitions[0], partitions[0]._replace(leader_epoch=0)
        try:
            return was_reassigned(image, directory, *which)  # type: ignore[arg-type]
        finally:
            partitions[0] = before

    monkeypatch.setattr(log_placement, "_was_reassigned", with_older_metadata)
    nodes.restart(1)
    nodes.until(lambda: nodes.is_reassigned(2, 3) and 1 in nodes.nodes)
    assert [name.rpartition("-")[2] for name in nodes.folders(1)] == ["stray"]


def test_a_replica_that_is_removed_and_added_again_at_once_begins_with_an_empty_log() -> None:
    nodes = Moving(min_isr=1)
    nodes.written(*numbered(0, 10))
    for replicas in ([2, 3], [2, 3, 1], [2], [1, 2]):
        assert nodes.reassign(replicas) == ErrorCode.NONE
    nodes.until(lambda: nodes.is_reassigned(1, 2))
    nodes.written(*numbered(10, 12))
    nodes.until(lambda: nodes.partition(1).high_watermark == 12)
    assert nodes.values(1) == numbered(0, 12)


def test_a_reassignment_is_completed_by_the_next_controller() -> None:
    nodes = Moving()
    nodes.written(*numbered(0, 5))
    nodes.kill(4)
    assert nodes.reassign([4, 2, 3]) == ErrorCode.NONE
    nodes.until(lambda: all(nodes.image(each).is_reassigning for each in nodes.nodes))
    controller = next(each for each, node in nodes.nodes.items() if node.metadata.active is not None)
    nodes.kill(controller)
    nodes.restart(4)
    nodes.restart(controller)
    nodes.until(lambda: nodes.is_reassigned(4, 2, 3))
    assert nodes.values(4) == numbered(0, 5)
