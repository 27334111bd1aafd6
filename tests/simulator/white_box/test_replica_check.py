"""Constructed replicas on three nodes: committed batches are equal on all in-sync replicas."""

from types import SimpleNamespace
from typing import cast

import pytest

from quire.metadata.partition_image import PartitionImage
from quire.replication.leader_role import LeaderRole
from simulator.ledger import Ledger, PartitionBook, TopicBook
from simulator.life import Life
from simulator.machine import Machine, MachineState
from simulator.white_box.replica_check import HAS_COMMITTED, SAME_LOG, WATERMARK, ReplicaCheck
from simulator.white_box.replica_hosts import Key
from tests.simulator.expected_violation import expect
from tests.simulator.white_box.logs import Batches, disk_with, replica

TOPIC_ID = bytes(16)
LOG: Batches = [(0, 1, [b"a1", b"b1"]), (2, 1, [b"c1"])]


class Cluster:
    """A partition with three replicas; node 1 leads it in epoch 1. Each replica is changed before `look`."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        topic = TopicBook("t", TOPIC_ID, 1, stays=True, replication_factor=3)
        self.ledger.topics[TOPIC_ID] = topic
        self.book: PartitionBook = topic.partitions[0]
        self.image = PartitionImage(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=1)
        self.logs: dict[int, Batches] = dict.fromkeys((1, 2, 3), LOG)
        self.ends = dict.fromkeys((1, 2, 3), 3)
        self.starts = dict.fromkeys((1, 2, 3), 0)
        self.high_watermarks = dict.fromkeys((1, 2, 3), 3)
        self.down = 0

    def new_check(self) -> tuple[ReplicaCheck, dict[Key, PartitionImage]]:
        machines = [self._machine(number) for number in (1, 2, 3)]
        return ReplicaCheck(machines, self.ledger), {(TOPIC_ID, 0): self.image}

    def check(self) -> int:
        """How many batches it has compared."""
        check, newest = self.new_check()
        check.check(newest, 0.0)
        return check.compared

    def _machine(self, number: int) -> Machine:
        partition = replica(
            self.ends[number], high_watermark=self.high_watermarks[number], start_offset=self.starts[number]
        )
        partition.topic_id, partition.index = TOPIC_ID, 0
        if number == 1:
            partition.leader = cast(LeaderRole, SimpleNamespace(leader_epoch=1))
        image = SimpleNamespace(partition=lambda *_: self.image)
        fields = SimpleNamespace(
            name=f"node-{number}",
            state=MachineState.DOWN if number == self.down else MachineState.SERVING,
            last_log_ends={(TOPIC_ID, 0): self.ends[number]} if number == self.down else {},
            life=Life(f"node-{number}", 1),
            disk=disk_with(self.logs[number]),
            node=SimpleNamespace(partitions=[partition], image=image),
        )
        return cast(Machine, fields)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_replicas_that_are_the_same_are_fine(cluster: Cluster) -> None:
    cluster.book.reached(3)
    assert cluster.check() == 6


def test_a_member_that_lacks_what_clients_know_is_found(cluster: Cluster) -> None:
    cluster.book.reached(3)
    cluster.ends[2] = 2
    with expect(HAS_COMMITTED):
        cluster.check()


def test_an_eligible_replica_that_lacks_what_clients_know_is_found_while_its_node_is_down(cluster: Cluster) -> None:
    """It may lead as soon as it returns."""
    cluster.book.reached(3)
    cluster.image = PartitionImage(replicas=(1, 2, 3), isr=(1, 3), elr=(2,), leader=1, leader_epoch=1)
    cluster.ends[2], cluster.down = 2, 2
    with expect(HAS_COMMITTED):
        cluster.check()
    cluster.ends[2] = 3
    cluster.check()


def test_a_replica_on_a_node_that_is_down_may_lack_what_it_lost_with_the_power(cluster: Cluster) -> None:
    cluster.book.reached(3)
    cluster.ends[2], cluster.down = 2, 2
    cluster.book.replicas.hurt["node-2"] = 2
    cluster.check()


def test_a_replica_in_the_elr_must_have_what_clients_know(cluster: Cluster) -> None:
    cluster.book.reached(3)
    cluster.ends[2] = 2
    cluster.image = cluster.image._replace(isr=(1,), elr=(2,))
    with expect(HAS_COMMITTED):
        cluster.check()


def test_one_that_lost_its_power_or_is_not_in_sync_may_lack_it(cluster: Cluster) -> None:
    cluster.book.reached(3)
    cluster.ends[2] = cluster.ends[3] = cluster.high_watermarks[2] = cluster.high_watermarks[3] = 2
    cluster.image = cluster.image._replace(isr=(1, 2))
    cluster.book.replicas.hurt["node-2"] = 0
    cluster.check()


def test_a_high_watermark_beyond_a_member_is_found(cluster: Cluster) -> None:
    cluster.ends[3] = 2
    with expect(WATERMARK):
        cluster.check()


def test_another_batch_below_the_high_watermark_is_found_and_above_it_is_fine(cluster: Cluster) -> None:
    cluster.logs[3] = [(0, 1, [b"a1", b"b1"]), (2, 1, [b"x1"])]
    cluster.high_watermarks[3] = 2
    cluster.check()
    cluster.high_watermarks[3] = 3
    with expect(SAME_LOG):
        cluster.check()


def test_another_batch_before_the_start_of_a_log_is_never_read(cluster: Cluster) -> None:
    cluster.logs[3] = [(0, 1, [b"a1", b"x1"]), (2, 1, [b"c1"])]
    cluster.starts[3] = 2
    cluster.check()
    cluster.starts[3] = 1
    with expect(SAME_LOG):
        cluster.check()


def test_a_partition_is_fully_replicated_with_a_leader_and_all_replicas_in_sync(cluster: Cluster) -> None:
    check, newest = cluster.new_check()
    assert check.is_fully_replicated(newest)
    for image in (cluster.image._replace(isr=(1, 2)), cluster.image._replace(leader=-1)):
        assert not check.is_fully_replicated({(TOPIC_ID, 0): image})
        assert len(check.missing({(TOPIC_ID, 0): image})) == 1
