"""Follows the leaders of all partitions, exactly: whenever a node applies metadata, and before anything else happens.

It tells the ledger which machines hold each partition, who leads it, and when a loss of records is allowed:

    all in the ISR and ELR lost power ──▶ unsettled ──▶ a leader of a later epoch serves ──▶ its log is the truth
    a replica outside of them is elected, and the topic allows it ──┘

All in the ISR and ELR have also lost power if those that have not leave them, as min.insync.replicas=1 allows: then a
replica that is down and not yet known to have lost power may remain alone.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from quire.metadata.image import ClusterImage
from quire.metadata.partition_image import RECOVERED, PartitionImage
from quire.protocol.internal_topics import TRANSACTION_STATE, is_internal
from quire.replication.partition import Partition
from simulator.checks.checker import Checker
from simulator.ledger import FLUSH_MESSAGES, Ledger, PartitionBook
from simulator.machine import Flushed, Machine, MachineState
from simulator.process import Process
from simulator.replicas import Replicas
from simulator.violation import Violation
from simulator.white_box.happenings import Happenings
from simulator.white_box.replica_hosts import Key
from simulator.white_box.settlement import settle

UNCLEAN = "only a replica in the ISR or ELR is elected, unless the topic allows others"

POWER_LOSS, UNCLEAN_ELECTION = "all that were in sync lost power", "an unclean election"


def _joined(before: PartitionImage, now: PartitionImage) -> tuple[int, ...]:
    """Replicas that may have joined the ISR with the change that elected a leader: they completed a reassignment."""
    is_complete = before.is_reassigning and not now.is_reassigning and now.leader_recovery_state == RECOVERED
    return now.isr if is_complete else ()


class Loss(NamedTuple):
    """Records of a partition may be lost, from `kept` on; a leader of a later epoch than `epoch` shows which."""

    epoch: int
    kept: int
    why: str


class LeadershipWatch:
    def __init__(
        self,
        machines: Sequence[Machine],
        ledger: Ledger,
        checker: Checker,
        happenings: Happenings,
        state_lost: Callable[[], None] = lambda: None,
        coordinator_moved: Callable[[], None] = lambda: None,
    ) -> None:
        """`state_lost` is called when records that coordinators or transactions need may be lost.

        `coordinator_moved` is called when a node applies that it coordinates the transactions of a partition, and
        another one did before. That can be long after the election: until then the earlier coordinator may continue.
        """
        self._machines = machines
        self._state_lost = state_lost
        self._coordinator_moved = coordinator_moved
        self._ledger = ledger
        self._checker = checker
        self._happenings = happenings
        self._names = {number: machine.name for number, machine in enumerate(machines, 1)}
        self._applied: dict[str, ClusterImage] = {}
        self._offsets: dict[str, int] = {}
        self._followed: list[tuple[Process | None, int]] = [(None, -1)] * len(machines)
        """Per machine, its process and how often that had run at the last look: images change only then."""
        self._newest: dict[Key, PartitionImage] = {}
        self._internal: dict[Key, Replicas] = {}
        self._coordinates: dict[int, tuple[int, str]] = {}
        """Per partition of transactions, the latest epoch that its leader has applied, and that leader."""
        self._broker_epochs: dict[str, int] = {}
        """The latest registration of each machine."""
        self._lost_power_in: dict[str, int] = {}
        """The registration with which it last lost power."""
        self._flushed: dict[tuple[str, Key], int] = {}
        self._losses: dict[PartitionBook, Loss] = {}
        self._internal_losses: dict[Key, int] = {}
        """Of coordinators' topics: partitions that wait for a leader of a later epoch than this one."""
        self.ever_lost: dict[Key, None] = {}
        """Partitions that may have lost records at some time, those of coordinators included."""

    @property
    def newest(self) -> dict[Key, PartitionImage]:
        """The latest state of every partition that any node has applied."""
        return self._newest

    def follow(self) -> None:
        for number, machine in enumerate(self._machines):
            process = machine.process
            if process is None:
                continue
            followed, runs = self._followed[number]
            if runs == process.runs and followed is process:
                continue
            self._followed[number] = process, process.runs
            node = machine.node
            if node is None or not hasattr(node, "metadata"):
                continue
            image = node.image
            if image.offset != self._offsets.get(machine.name):
                self._offsets[machine.name] = image.offset
                self._applies(machine.name, image)
        if self._losses or self._internal_losses:
            self._settle()

    # --- Metadata

    def _applies(self, node: str, image: ClusterImage) -> None:
        for number, broker in image.brokers.items():
            name = self._names[number]
            self._broker_epochs[name] = max(broker.epoch, self._broker_epochs.get(name, -1))
        for topic in list(image.topics_by_id.values()):
            book = self._ledger.topics.get(topic.topic_id)
            internal = is_internal(topic.name)
            if book is not None:
                book.flush_messages_of[node] = image.topic_configs(topic.name).get(FLUSH_MESSAGES, "")
            for index, partition in topic.partitions.items():
                key = topic.topic_id, index
                before = self._newest.get(key)
                if before is None or partition.partition_epoch > before.partition_epoch:
                    self._newest[key] = partition
                    self._changes(key, internal, before, partition)
                if book is not None and index < len(book.partitions):
                    self._believes(node, book.partitions[index], before or partition, partition)
                elif internal:
                    leadership = self._ledger.coordinators.partition(topic.name, index)
                    leadership.believes(node, partition.leader_epoch, self._names.get(partition.leader))
                    if topic.name == TRANSACTION_STATE and self._names.get(partition.leader) == node:
                        self._coordinates_transactions(node, index, partition.leader_epoch)
        self._happenings.brokers(image)

    def _coordinates_transactions(self, node: str, index: int, epoch: int) -> None:
        newest, coordinator = self._coordinates.get(index, (-1, node))
        if epoch > newest:
            self._coordinates[index] = epoch, node
            if node != coordinator:
                self._coordinator_moved()

    def _believes(self, node: str, book: PartitionBook, newest: PartitionImage, partition: PartitionImage) -> None:
        """`newest` was the newest state of the partition before the node applied this one."""
        leader = self._names.get(partition.leader)
        book.leadership.believes(node, partition.leader_epoch, leader)
        if partition == self._newest[book.topic.topic_id, book.index]:
            replicas, loss, were_lost = book.replicas, self._losses.get(book), book.replicas.are_lost
            replicas.are(self._in_sync(partition), self._has_returned)
            replicas.isr = tuple(self._names[each] for each in partition.isr if each in self._names)
            for number in set(partition.replicas) - set(newest.replicas):
                # Its log is a new one, which starts where that of its leader does.
                book.deleted.pop(self._names[number], None)
            if replicas.are_lost and (not were_lost if loss is None else replicas.kept < loss.kept):
                self._all_lost_power(book, newest.leader_epoch, book.replicas.kept)

    def _changes(self, key: Key, internal: bool, before: PartitionImage | None, now: PartitionImage) -> None:
        elected = before is not None and now.leader_epoch != before.leader_epoch and now.has_leader
        if before is not None:
            self._happenings.partition(key, before, now, internal=internal)
            if elected and now.leader not in (*before.isr, *before.elr, *_joined(before, now)):
                self._outsider_leads(key, before, now)
        if internal:
            replicas = self._internal.setdefault(key, Replicas())
            were_lost = replicas.are_lost
            replicas.are(self._in_sync(now), self._has_returned)
            if replicas.are_lost and not were_lost:
                self._state_may_be_lost(key, now.leader_epoch if before is None else before.leader_epoch)

    def _outsider_leads(self, key: Key, before: PartitionImage, now: PartitionImage) -> None:
        """A replica was elected that was not among the eligible ones, as far as two images can tell."""
        topic = self._ledger.topics.get(key[0])
        book = topic.partitions[key[1]] if topic is not None and key[1] < len(topic.partitions) else None
        replicas = self._internal.get(key) if book is None else book.replicas
        if replicas is None:
            return
        if before.last_known_elr == (now.leader,) and self._none_is_eligible(before, replicas):
            # It has everything, except for what it has lost with the power itself.
            name = self._names[now.leader]
            if book is not None and name in replicas.hurt:
                self._all_lost_power(book, before.leader_epoch, replicas.hurt[name])
            elif name in replicas.hurt:
                self._state_may_be_lost(key, before.leader_epoch)
        elif book is not None and book.topic.may_elect_uncleanly:
            self._happenings.count("unclean election")
            self._loses(book, before.leader_epoch, 0, UNCLEAN_ELECTION)
        elif now.partition_epoch == before.partition_epoch + 1:
            raise Violation(UNCLEAN, f"{now.leader} leads {topic}-{key[1]}: {before} became {now}")

    def _none_is_eligible(self, partition: PartitionImage, replicas: Replicas) -> bool:
        """Whether each member of the ISR and ELR lost its place there, because it may have lost records."""
        return all(
            self._names[number] in replicas.hurt or self._machines[number - 1].had_failed_directory
            for number in (*partition.isr, *partition.elr)
        )

    def _has_returned(self, machine: str) -> bool:
        """Whether it has registered since it lost power. What it had before may have become known later."""
        before = self._lost_power_in.get(machine)
        return before is None or self._broker_epochs.get(machine, -1) != before

    def _in_sync(self, partition: PartitionImage) -> list[str]:
        members = dict.fromkeys((*partition.isr, *partition.elr))
        return [self._names[replica] for replica in members if replica in self._names]

    # --- Losses

    def ended(self, machine: str, flushed: Flushed, *, power_lost: bool) -> None:
        """A node has ended."""
        self._offsets.pop(machine, None)
        for key, offset in flushed:
            self._flushed[machine, key] = offset
        for topic in self._ledger.topics.values():
            topic.flush_messages_of.pop(machine, None)
            for book in topic.partitions:
                book.leadership.forgets(machine)
        self._ledger.coordinators.forgets(machine)
        if power_lost:
            if machine in self._broker_epochs:
                self._lost_power_in[machine] = self._broker_epochs[machine]
            self._power_lost(machine)

    def _power_lost(self, machine: str) -> None:
        for key, replicas in self._internal.items():
            if replicas.power_lost(machine, self._flushed.get((machine, key), 0)):
                self._state_may_be_lost(key, self._newest[key].leader_epoch)
        for topic in self._ledger.topics.values():
            for book in topic.partitions:
                key = topic.topic_id, book.index
                before = dict(book.replicas.hurt)
                all_hurt = book.replicas.power_lost(machine, self._flushed.get((machine, key), 0))
                if all_hurt and book.replicas.hurt != before:
                    latest = self._newest.get(key)
                    epoch = -1 if latest is None else latest.leader_epoch
                    self._all_lost_power(book, epoch, book.replicas.kept)

    def _state_may_be_lost(self, key: Key, epoch: int) -> None:
        """A leader of a later epoch has what is left.

        Clients recognize the loss by its number, also if no other partition lost anything at the same time.
        """
        self._internal_losses[key] = epoch
        self.ever_lost[key] = None
        if not self._ledger.transactions.durable:
            self._ledger.era += 1
        self._state_lost()

    def _all_lost_power(self, book: PartitionBook, epoch: int, kept: int) -> None:
        """A leader of a later epoch shows what is left."""
        self._loses(book, epoch, kept, POWER_LOSS)
        if book.topic.transactional:
            self._state_lost()

    def _loses(self, book: PartitionBook, epoch: int, kept: int, why: str) -> None:
        earlier = self._losses.get(book)
        if earlier is not None:
            kept, why = min(kept, earlier.kept), UNCLEAN_ELECTION if UNCLEAN_ELECTION in (why, earlier.why) else why
        self._losses[book] = Loss(epoch, kept, why)
        self.ever_lost[book.topic.topic_id, book.index] = None
        self._ledger.era += 1
        book.may_be_lost(self._ledger.era, kept)
        book.unsettled = True
        self._happenings.count("possible loss")

    def _settle(self) -> None:
        for key, epoch in list(self._internal_losses.items()):
            if self._leader_since(epoch, key) is not None:
                del self._internal_losses[key]
                self._internal[key].hurt.clear()
        for book, loss in list(self._losses.items()):
            if book.topic.deletion_asked:
                self._gives_up(book)
            elif (found := self._leader_since(loss.epoch, (book.topic.topic_id, book.index))) is not None:
                self._adopts(book, loss, *found)

    def _gives_up(self, book: PartitionBook) -> None:
        """A topic that is being deleted is no longer read."""
        del self._losses[book]
        book.topic.given_up = True
        book.unsettled = False

    def _leader_since(self, epoch: int, key: Key) -> tuple[Machine, Partition, int] | None:
        """The newest leader, with its epoch, once it serves and leads. The controller may elect a node that is down."""
        latest = self._newest.get(key)
        if latest is None or latest.leader_epoch <= epoch or not latest.has_leader:
            return None
        machine = self._machines[latest.leader - 1]
        if machine.node is None or machine.state is not MachineState.SERVING:
            return None
        for partition in machine.node.partitions:
            if (partition.topic_id, partition.index) == key:
                role = partition.leader
                is_leader = role is not None and role.leader_epoch == latest.leader_epoch
                return (machine, partition, latest.leader_epoch) if is_leader else None
        return None

    def _adopts(self, book: PartitionBook, loss: Loss, machine: Machine, leader: Partition, epoch: int) -> None:
        """What the leader has is the truth from now on."""
        if loss.why == UNCLEAN_ELECTION:
            book.promised = 0
        lost = settle(self._checker, book, machine.disk, leader, kept=loss.kept)
        del self._losses[book]
        book.leadership.settled, book.leadership.cut_at = epoch, book.end_offset
        self._ledger.era += 1
        book.era = book.looked_at = self._ledger.era
        book.unsettled = False
        book.replicas.hurt.clear()
        if lost:
            self._happenings.count("loss of records")
