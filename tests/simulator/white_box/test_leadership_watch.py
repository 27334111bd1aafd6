"""The leaders according to the metadata of nodes, and when the loss of records is allowed."""

from types import SimpleNamespace
from typing import cast

import pytest

from quire.metadata.image import TOPIC, BrokerImage, ClusterImage, ConfigResource, TopicImage
from quire.metadata.partition_image import PartitionImage
from quire.protocol.internal_topics import GROUP_OFFSETS, TRANSACTION_STATE
from simulator.checks.checker import Checker
from simulator.ledger import FLUSH_MESSAGES, UNCLEAN_ELECTION, Ledger, PartitionBook, Setting, TopicBook
from simulator.machine import Machine, MachineState
from simulator.white_box.happenings import Happenings
from simulator.white_box.leadership_watch import UNCLEAN, LeadershipWatch
from tests.simulator.expected_violation import expect

TOPIC_ID = bytes(16)
A, B = "node-1", "node-2"
BOTH = PartitionImage(replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=1, partition_epoch=1)
B_ALONE = BOTH._replace(isr=(2,), leader=2, leader_epoch=2, partition_epoch=2)
A_WAITS_FOR_B = BOTH._replace(isr=(), elr=(2,), leader=-1, leader_epoch=2, partition_epoch=2, last_known_elr=(1,))
A_LEADS = BOTH._replace(isr=(1,), leader=1, leader_epoch=3, partition_epoch=3)


class Cluster:
    """Two nodes with one partition. Each state comes from the metadata that a node has applied."""

    def __init__(self, topic: str = "t") -> None:
        self.name = topic
        self.ledger = Ledger()
        if topic == "t":
            found = TopicBook(topic, TOPIC_ID, 1, stays=True, replication_factor=2)
            self.ledger.topics[TOPIC_ID] = found
        self.nodes = {name: SimpleNamespace(metadata=True, image=ClusterImage()) for name in (A, B)}
        self.machines = {
            name: SimpleNamespace(
                name=name,
                node=node,
                state=MachineState.DOWN,
                had_failed_directory=False,
                process=SimpleNamespace(runs=0),
            )
            for name, node in self.nodes.items()
        }
        machines = [cast(Machine, machine) for machine in self.machines.values()]
        self.brokers: dict[int, BrokerImage] = {}
        self.losses = 0
        """How often coordinators may have lost their state."""
        self.moves = 0
        """How often a coordinator of transactions moved."""
        self.watch = LeadershipWatch(
            machines, self.ledger, Checker(self.ledger), Happenings(), self._state_lost, self._coordinator_moved
        )

    def _state_lost(self) -> None:
        self.losses += 1

    def _coordinator_moved(self) -> None:
        self.moves += 1

    @property
    def book(self) -> PartitionBook:
        return self.ledger.topics[TOPIC_ID].partitions[0]

    def applies(self, node: str, partition: PartitionImage, *, settings: dict[str, str] | None = None) -> None:
        topic = TopicImage(self.name, TOPIC_ID, {0: partition})
        self.nodes[node].image = ClusterImage(
            offset=partition.partition_epoch,
            topics_by_id={TOPIC_ID: topic},
            brokers=dict(self.brokers),
            configs={ConfigResource(TOPIC, self.name): settings or {}},
        )
        self.machines[node].process.runs += 1
        self.watch.follow()

    def registers(self, number: int, epoch: int) -> None:
        """The next image has the registration."""
        self.brokers[number] = cast(BrokerImage, SimpleNamespace(broker_id=number, epoch=epoch, fenced=False))

    def leads(self, node: str, epoch: int) -> None:
        """The node serves, and leads the partition in this epoch."""
        role = SimpleNamespace(leader_epoch=epoch)
        self.nodes[node].partitions = [SimpleNamespace(topic_id=TOPIC_ID, index=0, leader=role)]
        self.machines[node].state = MachineState.SERVING

    def loses_power(self, node: str, flushed: int = 0) -> bool:
        """Returns whether coordinators may have lost their state."""
        before = self.losses
        self.watch.ended(node, [((TOPIC_ID, 0), flushed)], power_lost=True)
        return self.losses > before


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster()
    found.applies(A, BOTH)
    return found


def test_each_node_leads_as_far_as_it_knows(cluster: Cluster) -> None:
    cluster.applies(B, B_ALONE)
    leadership = cluster.book.leadership
    assert (leadership.newest, leadership.leader) == (2, B)
    assert (leadership.epoch_of(A), leadership.epoch_of(B)) == (1, 2)
    assert cluster.book.replicas.in_sync == (B,)


def test_coordinators_lead_as_far_as_they_know_too() -> None:
    cluster = Cluster(GROUP_OFFSETS)
    cluster.applies(A, BOTH)
    cluster.applies(B, B_ALONE)
    leadership = cluster.ledger.coordinators.of_group("group")
    assert (leadership.newest, leadership.epoch_of(A), leadership.epoch_of(B)) == (2, 1, 2)
    cluster.loses_power(B)
    assert leadership.epoch_of(B) == -1


def test_a_coordinator_of_transactions_moves_when_the_next_one_knows_that_it_leads() -> None:
    cluster = Cluster(TRANSACTION_STATE)
    cluster.applies(A, BOTH)
    cluster.applies(A, B_ALONE)
    assert cluster.moves == 0, "until then a coordinator that was deposed, and does not know it, may begin transactions"
    cluster.applies(B, B_ALONE)
    cluster.applies(B, B_ALONE._replace(isr=(1, 2), partition_epoch=3))
    assert cluster.moves == 1
    cluster.applies(A, A_LEADS._replace(partition_epoch=4))
    assert cluster.moves == 2


def test_a_coordinator_that_leads_again_or_replays_old_metadata_has_not_moved() -> None:
    cluster = Cluster(TRANSACTION_STATE)
    cluster.applies(A, BOTH)
    cluster.applies(A, A_LEADS)
    cluster.applies(B, B_ALONE)
    assert cluster.moves == 0


def test_the_coordinator_of_groups_judges_no_transaction_by_its_clock() -> None:
    cluster = Cluster(GROUP_OFFSETS)
    cluster.applies(A, BOTH)
    cluster.applies(B, B_ALONE)
    assert cluster.moves == 0


def test_a_replica_may_lead_that_joined_with_the_change_that_completed_a_reassignment(cluster: Cluster) -> None:
    moving = BOTH._replace(isr=(1,), adding_replicas=(2,), removing_replicas=(1,), partition_epoch=2)
    cluster.applies(A, moving)
    moved = BOTH._replace(replicas=(2,), isr=(2,), leader=2, leader_epoch=2, partition_epoch=3)
    cluster.applies(B, moved)
    assert cluster.book.replicas.in_sync == (B,)


def test_a_replica_that_is_being_added_may_not_lead_before_it_is_in_sync(cluster: Cluster) -> None:
    moving = BOTH._replace(isr=(1,), adding_replicas=(2,), partition_epoch=2)
    cluster.applies(A, moving)
    with expect(UNCLEAN):
        cluster.applies(B, moving._replace(isr=(2,), leader=2, leader_epoch=2, partition_epoch=3))


def test_a_replica_that_is_added_again_has_not_deleted_anything_yet(cluster: Cluster) -> None:
    cluster.book.deleted = {A: 7, B: 7}
    cluster.applies(B, B_ALONE._replace(replicas=(2,)))
    cluster.applies(B, B_ALONE._replace(replicas=(2, 1), adding_replicas=(1,), partition_epoch=3))
    assert cluster.book.deleted == {B: 7}


def test_older_metadata_changes_nothing(cluster: Cluster) -> None:
    cluster.applies(B, B_ALONE)
    cluster.applies(A, BOTH)
    assert cluster.book.replicas.in_sync == (B,)


def test_records_may_be_lost_once_all_in_sync_have_lost_power(cluster: Cluster) -> None:
    cluster.loses_power(A, flushed=7)
    assert not cluster.book.unsettled
    cluster.loses_power(B, flushed=5)
    assert cluster.book.unsettled
    assert cluster.book.surely_kept(0) == 5


def test_records_may_be_lost_once_those_that_did_not_lose_power_have_left(cluster: Cluster) -> None:
    cluster.loses_power(B, flushed=5)
    assert not cluster.book.unsettled
    cluster.applies(A, BOTH._replace(isr=(2,), leader=2, partition_epoch=2))
    assert cluster.book.unsettled
    assert cluster.book.surely_kept(0) == 5


def test_a_replica_that_lost_power_and_is_back_in_sync_has_everything(cluster: Cluster) -> None:
    cluster.loses_power(B)
    cluster.applies(A, BOTH._replace(isr=(1,), partition_epoch=2))
    cluster.applies(A, BOTH._replace(partition_epoch=3))
    cluster.applies(A, B_ALONE._replace(partition_epoch=4))
    assert not cluster.book.unsettled


def test_a_replica_may_join_the_isr_with_what_it_had_before_it_lost_power(cluster: Cluster) -> None:
    """Its leader has asked for that before, and the controller decides later."""
    cluster.registers(1, epoch=7)
    cluster.registers(2, epoch=8)
    cluster.applies(A, BOTH._replace(isr=(1,), partition_epoch=2))
    cluster.loses_power(A, flushed=9)
    cluster.loses_power(B, flushed=5)
    assert cluster.book.surely_kept(0) == 9
    cluster.applies(A, BOTH._replace(partition_epoch=3))
    assert cluster.book.surely_kept(1) == 5


def test_a_replica_that_has_registered_since_it_lost_power_joins_with_everything(cluster: Cluster) -> None:
    cluster.registers(2, epoch=8)
    cluster.applies(A, BOTH._replace(isr=(1,), partition_epoch=2))
    cluster.loses_power(B, flushed=5)
    cluster.registers(2, epoch=9)
    cluster.applies(A, BOTH._replace(partition_epoch=3))
    assert cluster.book.replicas.hurt == {}


def test_coordinators_lose_state_when_those_that_did_not_lose_power_have_left() -> None:
    cluster = Cluster(GROUP_OFFSETS)
    cluster.applies(A, BOTH)
    assert not cluster.loses_power(B)
    cluster.applies(A, BOTH._replace(isr=(2,), leader=2, partition_epoch=2))
    assert cluster.losses == 1


def test_a_kill_loses_nothing(cluster: Cluster) -> None:
    for node in (A, B):
        cluster.watch.ended(node, [], power_lost=False)
    assert not cluster.book.unsettled


def test_an_unclean_election_needs_the_topics_permission(cluster: Cluster) -> None:
    cluster.applies(A, B_ALONE)
    with expect(UNCLEAN):
        cluster.applies(A, BOTH._replace(isr=(1,), leader=1, leader_epoch=3, partition_epoch=3))


def test_an_unclean_election_that_is_allowed_may_lose_everything(cluster: Cluster) -> None:
    cluster.book.topic.settings[UNCLEAN_ELECTION] = Setting("true")
    cluster.applies(A, B_ALONE)
    cluster.applies(A, BOTH._replace(isr=(1,), leader=1, leader_epoch=3, partition_epoch=3))
    assert cluster.book.unsettled
    assert cluster.book.surely_kept(0) == 0


def test_an_unclean_election_after_a_power_loss_may_lose_what_was_on_disk_elsewhere(cluster: Cluster) -> None:
    cluster.book.topic.settings[UNCLEAN_ELECTION] = Setting("true")
    cluster.applies(A, B_ALONE)
    cluster.loses_power(B, flushed=5)
    assert cluster.book.surely_kept(0) == 5
    cluster.applies(A, A_LEADS)
    assert cluster.book.surely_kept(1) == 0


def test_the_last_known_leader_may_lead_if_no_replica_is_eligible(cluster: Cluster) -> None:
    cluster.applies(A, A_WAITS_FOR_B._replace(elr=()))
    cluster.applies(A, A_LEADS)
    assert not cluster.book.unsettled, "no power was lost, so it must have everything"


def test_the_last_known_leader_may_lead_if_the_eligible_ones_have_lost_power(cluster: Cluster) -> None:
    cluster.loses_power(A, flushed=5)
    cluster.applies(A, A_WAITS_FOR_B)
    cluster.loses_power(B, flushed=7)
    assert cluster.book.surely_kept(0) == 7
    cluster.applies(A, A_LEADS)
    assert cluster.book.surely_kept(1) == 5, "it lost power too"


def test_the_last_known_leader_must_not_lead_while_another_replica_is_eligible(cluster: Cluster) -> None:
    cluster.loses_power(A)
    cluster.applies(A, A_WAITS_FOR_B)
    with expect(UNCLEAN):
        cluster.applies(A, A_LEADS)


def test_the_last_known_leader_is_elected_uncleanly_while_another_replica_is_eligible(cluster: Cluster) -> None:
    cluster.book.topic.settings[UNCLEAN_ELECTION] = Setting("true")
    cluster.loses_power(A, flushed=5)
    cluster.applies(A, A_WAITS_FOR_B)
    cluster.applies(A, A_LEADS)
    assert cluster.book.unsettled
    assert cluster.book.surely_kept(0) == 0


def test_the_last_known_leader_may_lead_if_the_disk_of_the_eligible_one_has_failed(cluster: Cluster) -> None:
    cluster.loses_power(A, flushed=5)
    cluster.applies(A, A_WAITS_FOR_B)
    cluster.machines[B].had_failed_directory = True
    cluster.applies(A, A_LEADS)
    assert cluster.book.surely_kept(0) == 5


def test_coordinators_lose_state_if_the_last_known_leader_has_lost_power() -> None:
    cluster = Cluster(GROUP_OFFSETS)
    cluster.applies(A, BOTH)
    cluster.loses_power(A)
    cluster.applies(A, A_WAITS_FOR_B)
    cluster.machines[B].had_failed_directory = True
    assert cluster.losses == 0
    cluster.applies(A, A_LEADS)
    assert cluster.losses == 1


def test_coordinators_lose_records_only_with_all_that_are_in_sync() -> None:
    cluster = Cluster(GROUP_OFFSETS)
    cluster.applies(A, BOTH)
    assert not cluster.loses_power(A)
    assert cluster.loses_power(B)
    cluster.leads(A, 2)
    cluster.applies(A, BOTH._replace(isr=(1,), leader=1, leader_epoch=2, partition_epoch=2))
    cluster.applies(A, BOTH._replace(leader=1, leader_epoch=2, partition_epoch=3))
    assert not cluster.loses_power(B), "the first one has everything that is left"


@pytest.mark.parametrize(("durable", "eras"), [(False, 1), (True, 0)])
def test_coordinators_that_lose_state_begin_an_era_unless_it_was_flushed(durable: bool, eras: int) -> None:
    cluster = Cluster(GROUP_OFFSETS)
    cluster.ledger.transactions.durable = durable
    cluster.applies(A, BOTH)
    cluster.applies(A, BOTH._replace(replicas=(2,), isr=(2,), leader=2, leader_epoch=2, partition_epoch=2))
    cluster.loses_power(B)
    assert cluster.ledger.era == eras


def test_an_elected_leader_that_is_down_says_nothing_about_what_is_left() -> None:
    cluster = Cluster(GROUP_OFFSETS)
    cluster.applies(A, BOTH)
    cluster.loses_power(B)
    cluster.loses_power(A)
    cluster.applies(A, B_ALONE._replace(last_known_elr=(1,)))
    cluster.applies(A, A_LEADS)  # B has registered again, and has lost its place


def test_a_flush_at_every_message_is_promised_once_all_nodes_have_applied_it() -> None:
    cluster = Cluster()
    topic = cluster.book.topic
    cluster.applies(A, BOTH)
    cluster.applies(B, BOTH)
    topic.settings[FLUSH_MESSAGES] = Setting("1")
    topic.flush_changes = 1
    assert topic.flushed_since is None
    later = BOTH._replace(partition_epoch=2)
    cluster.applies(A, later, settings={FLUSH_MESSAGES: "1"})
    assert topic.flushed_since is None, "the other node may lead"
    cluster.watch.ended(B, [], power_lost=False)
    assert topic.flushed_since == 1, "it applies the setting before it serves again"
