"""Leaderships return to the first replicas on virtual time, as the settings say."""

import pytest

from quire.controller.leader_rebalance import restore_preferred
from quire.metadata.partition_image import PartitionImage
from quire.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    BrokerState,
)
from quire.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tests.controller.images import CONFIG, carried_out, cluster, partition, topic
from tests.controller.sim_controller import FROM_A_NODE, NODE_ID, SimController

OTHER = 2
MINUTE_MS = 60_000
DEFAULT_INTERVAL_MS = 300_000
MANY = 3_000


class Pair:
    """This node's broker and one other, which is the first replica of every partition."""

    def __init__(self, **settings: str) -> None:
        self.sim = SimController(None, 1, broker_session_timeout_ms="9000000", **settings).start()
        self.epoch = self.sim.register(OTHER)
        self.unfence()

    def unfence(self) -> None:
        assert not self.sim.heartbeat(OTHER, self.epoch).is_fenced

    def create(self, name: str, partitions: int = 1) -> None:
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=[OTHER, NODE_ID])
            for index in range(partitions)
        ]
        wanted = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=assignments)
        pending = self.sim.controller.create_topics(CreateTopicsRequest(topics=[wanted]))
        assert self.sim.settle(pending).topics[0].error_code == 0

    def fail_over(self) -> None:
        """The other broker stops and returns, and joins the ISR again."""
        self.sim.heartbeat(OTHER, self.epoch, want_fence=True)
        assert self.leaders == {NODE_ID}
        self.unfence()

    def catch_up(self, name: str) -> None:
        led = self.sim.image.topics_by_name[name]
        members = [
            BrokerState(broker_id=NODE_ID, broker_epoch=self.sim.broker_epoch),
            BrokerState(broker_id=OTHER, broker_epoch=self.epoch),
        ]
        wanted = [
            AlterPartitionRequestPartitionData(
                partition_index=index,
                leader_epoch=each.leader_epoch,
                partition_epoch=each.partition_epoch,
                new_isr_with_epochs=members,
            )
            for index, each in led.partitions.items()
        ]
        request = AlterPartitionRequest(
            broker_id=NODE_ID,
            broker_epoch=self.sim.broker_epoch,
            topics=[AlterPartitionRequestTopicData(topic_id=led.topic_id, partitions=wanted)],
        )
        answer: AlterPartitionResponse = self.sim.settle(self.sim.controller.alter_partition(request, FROM_A_NODE))
        codes = {each.error_code for topic in answer.topics for each in topic.partitions}
        assert (answer.error_code, codes) == (0, {0})

    def partitions(self) -> list[PartitionImage]:
        return [each for topic in self.sim.image.topics_by_name.values() for each in topic.partitions.values()]

    @property
    def leaders(self) -> set[int]:
        return {each.leader for each in self.partitions()}


def test_a_leadership_returns_at_the_next_check() -> None:
    pair = Pair()
    pair.create("orders")
    pair.fail_over()
    pair.catch_up("orders")
    epoch = pair.partitions()[0].leader_epoch
    pair.sim.run(DEFAULT_INTERVAL_MS - MINUTE_MS)
    assert pair.leaders == {NODE_ID}
    pair.sim.run(MINUTE_MS)
    (now,) = pair.partitions()
    assert (now.leader, now.leader_epoch, set(now.isr)) == (OTHER, epoch + 1, {NODE_ID, OTHER})


def test_the_interval_is_a_setting() -> None:
    pair = Pair(leader_imbalance_check_interval_seconds="2")
    pair.create("orders")
    pair.fail_over()
    pair.catch_up("orders")
    pair.sim.run(2_000)
    assert pair.leaders == {OTHER}


def test_no_leadership_returns_by_itself_if_that_is_off() -> None:
    pair = Pair(leader_imbalance_check_interval_seconds="1", auto_leader_rebalance_enable="false")
    pair.create("orders")
    pair.fail_over()
    pair.catch_up("orders")
    pair.sim.run(MINUTE_MS)
    assert pair.leaders == {NODE_ID}


def test_a_first_replica_must_be_in_sync_and_is_elected_once_it_is() -> None:
    pair = Pair(leader_imbalance_check_interval_seconds="1")
    pair.create("orders")
    pair.fail_over()
    pair.sim.run(MINUTE_MS)
    assert pair.leaders == {NODE_ID}
    pair.catch_up("orders")
    pair.sim.run(1_000)
    assert pair.leaders == {OTHER}


def test_the_next_failover_is_undone_too() -> None:
    pair = Pair(leader_imbalance_check_interval_seconds="1")
    pair.create("orders")
    for _ in range(2):
        pair.fail_over()
        pair.catch_up("orders")
        pair.sim.run(1_500)
        assert pair.leaders == {OTHER}


def test_a_full_disk_is_not_filled_further(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(leader_imbalance_check_interval_seconds="1")
    pair.create("orders")
    pair.fail_over()
    pair.catch_up("orders")
    with monkeypatch.context() as full_disk:
        full_disk.setattr(type(pair.sim.replica.log), "waits_for_room", property(lambda _: True))
        pair.sim.run(5_000)
        assert pair.leaders == {NODE_ID}
    pair.sim.run(1_000)
    assert pair.leaders == {OTHER}


def test_nothing_is_checked_after_the_term() -> None:
    pair = Pair(leader_imbalance_check_interval_seconds="1")
    pair.create("orders")
    pair.fail_over()
    pair.catch_up("orders")
    assert pair.sim.replica.active is not None
    pair.sim.replica.active.stop()
    pair.sim.run(5_000)
    assert pair.leaders == {NODE_ID}


@pytest.mark.parametrize("leader", [1, 2])
def test_many_partitions_are_looked_at_in_portions(leader: int) -> None:
    image = cluster(topic(), *(partition(index, (1, 2), leader=leader) for index in range(MANY)), brokers=2)
    assert len(next(restore_preferred(image.copy(), CONFIG))) == leader - 1, "one record at most, then others may run"
    result = carried_out(image, lambda each: restore_preferred(each, CONFIG))
    assert (result.response, len(result.records)) == ((leader - 1) * MANY,) * 2
