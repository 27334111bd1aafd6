"""What clients requested and what they were answered: the other half of every check.

The ledger knows nothing of how a node works. Per partition it has every record that was sent, the offsets at which
records were acknowledged or read, and the highest ends and starts that a client has seen; per topic, what was
acknowledged to the administrator. Power losses, of any machine, are numbered (`era`). A partition remembers the number
of the last one that may have taken records of it (`simulator.replicas`): what was answered earlier may be lost, unless
it had been flushed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from simulator.hosts import ALONE
from simulator.leadership import Coordinators, Leadership
from simulator.replicas import Replicas
from simulator.ticks import Ticks
from simulator.transaction_ledger import TransactionLedger

RECORD_OVERHEAD_BYTES = 200
"""The space that a record may need besides its value: its own batch, key, headers, a codec's frame."""

FLUSH_MESSAGES = "flush.messages"
UNCLEAN_ELECTION = "unclean.leader.election.enable"

TopicPartition = tuple[bytes, int]
"""Topic id and index."""


@dataclass(slots=True)
class Written:
    """A record that was sent: its number in the producer's session, and how often it was sent."""

    session: str
    number: int
    idempotent: bool
    timestamp: int | None = None
    """The one that its producer set."""
    copies: int = 0
    acknowledged: bool = False


@dataclass(slots=True)
class Known:
    """What is at an offset, and how that became known."""

    value: bytes
    how: str
    timestamp: int | None = None
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Floor:
    """What was known when a request was sent: its answer must not be older."""

    end_offset: int
    start_offset: int
    stable_offset: int = 0
    epoch: int | None = None
    """The epoch in which the node that was asked led the partition (-1: it did not); None if that does not matter."""
    end_epoch: int = -1
    """The leader epoch in which `end_offset` became known."""
    stable_epoch: int = -1
    """The leader epoch in which `stable_offset` became known."""
    deleted: int = 0
    """Up to where a deletion of records was acknowledged."""


NOTHING_KNOWN = Floor(0, 0)


class PartitionBook:
    __slots__ = (
        "deleted",
        "deletion_asked",
        "end_epoch",
        "end_offset",
        "era",
        "ever_read",
        "flushed",
        "index",
        "known",
        "leadership",
        "looked_at",
        "offset_of",
        "promised",
        "replicas",
        "sent_bytes",
        "stable_epoch",
        "stable_offset",
        "start_offset",
        "survived",
        "tentative",
        "topic",
        "unsettled",
        "written",
    )

    def __init__(self, topic: "TopicBook", index: int) -> None:
        self.topic = topic
        self.index = index
        self.written: dict[bytes, Written] = {}
        self.sent_bytes = 0
        """The largest possible size of the log: every copy of every record that was sent."""
        self.known: dict[int, Known] = {}
        self.offset_of: dict[bytes, int] = {}
        """Where the records of idempotent producers are."""
        self.ever_read: dict[tuple[int, int], bytes] = {}
        """What was read at each leader epoch and offset; it is kept after a power loss."""
        self.end_offset = 0
        """The highest high watermark that a client has seen."""
        self.start_offset = 0
        """The highest log start offset that a client has seen."""
        self.stable_offset = 0
        """The highest last stable offset that a client has seen."""
        self.deletion_asked = 0
        """The highest offset in a DeleteRecords request."""
        self.deleted: dict[str, int] = {}
        """The highest low watermark in an answer to one, for each node that was in the ISR by then."""
        self.end_epoch = -1
        """The leader epoch in which `end_offset` became known."""
        self.stable_epoch = -1
        """The leader epoch in which `stable_offset` became known."""
        self.tentative: dict[tuple[int, int], bytes] = {}
        """What was acknowledged with acks=1, by leader epoch and offset: it holds for this leader only."""
        self.leadership = Leadership()
        self.flushed = 0
        """Everything below is on disk, according to the log."""
        self.promised = 0
        """Everything below must be on disk, because a client has seen it while flush.messages was 1."""
        self.replicas = Replicas()
        self.era = 0
        """The number of the last power loss that may have taken records."""
        self.survived: dict[int, int] = {}
        """For each such power loss, what was on disk then."""
        self.looked_at = 0
        """The last of them after which a client has read what was left."""
        self.unsettled = False
        """In a cluster: records may be lost, and no leader was elected since."""

    def __repr__(self) -> str:
        return f"{self.topic.name}-{self.index}"

    def floor(self, node: str = ALONE, *, afresh: bool = False) -> Floor:
        """What an answer of this node may not contradict.

        `afresh` is for a log after a power loss: its earlier end does not count, its earlier start does.
        """
        if afresh:
            return Floor(0, self.start_offset)
        epoch = self.leadership.epoch_of(node)
        return Floor(
            self.end_offset,
            self.start_offset,
            self.stable_offset,
            epoch,
            self.end_epoch,
            self.stable_epoch,
            self.deleted.get(node, 0),
        )

    def reached(self, end_offset: int, epoch: int | None = None) -> None:
        """A client has learned from a leader of this epoch that everything below is committed."""
        if end_offset > self.end_offset:
            self.end_offset, self.end_epoch = end_offset, -1 if epoch is None else epoch

    def power_lost(self, machine: str, era: int, flushed: int | None = None) -> bool:
        """A machine has lost power, as the loss number `era`: returns whether that may have taken records.

        `flushed` is the end of what this machine had on disk; by default what any machine had.
        """
        if not self.replicas.power_lost(machine, self.flushed if flushed is None else flushed):
            return False
        self.may_be_lost(era, self.flushed if flushed is None else self.replicas.kept)
        return True

    def may_be_lost(self, era: int, kept: int) -> None:
        """Records from `kept` on may be lost; the event has the number `era`."""
        self.survived[era] = kept
        self.era = era

    def surely_kept(self, era: int) -> int:
        """The end of what was on disk at the first loss after `era`."""
        return next((end for loss, end in self.survived.items() if loss > era), 0)

    def send(self, value: bytes, session: str, number: int, *, idempotent: bool, timestamp: int | None = None) -> None:
        """The record is being sent, perhaps not for the first time."""
        written = self.written.setdefault(value, Written(session, number, idempotent, timestamp))
        written.copies += 1
        self.sent_bytes += len(value) + RECORD_OVERHEAD_BYTES

    def acknowledges(self, values: Sequence[bytes]) -> int:
        """A batch is acknowledged: returns how many of its records are for the first time."""
        written = [self.written[value] for value in values if value in self.written]
        first = [each for each in written if not each.acknowledged]
        for each in first:
            each.acknowledged = True
        return len(first)

    def give_up_order(self, value: bytes) -> None:
        """A record may be in the log without those before it, but not twice: it becomes a session of its own."""
        written = self.written[value]
        written.session += f"?{written.number}"

    def learn(self, offset: int, known: Known, *, idempotent: bool, epoch: int | None = None) -> None:
        if offset not in self.known or known.timestamp is not None:
            self.known[offset] = known
        if idempotent:
            self.offset_of[known.value] = offset
        self.reached(offset + 1, epoch)

    def cut(self, start_offset: int, end_offset: int) -> int:
        """Sets the log to what was found after a power loss. Returns how many known records it lost."""
        lost = self.forget(end_offset)
        self.end_offset = end_offset
        self.start_offset = max(self.start_offset, start_offset)
        # A replica that was emptied starts again.
        self.deleted = {node: min(before, start_offset) for node, before in self.deleted.items()}
        if end_offset < self.stable_offset or self.topic.flushed_since != 0:
            # A marker may have been lost, and its transaction is open again.
            self.stable_offset = 0
        return lost

    def forget(self, offset: int) -> int:
        """Removes the known records from this offset on. Returns their number."""
        lost = [each for each in self.known if each >= offset]
        for each in lost:
            self.offset_of.pop(self.known.pop(each).value, None)
        return len(lost)


@dataclass(slots=True)
class Setting:
    """One configuration key of a topic: the value last acknowledged, and those that may or may not have been set."""

    acknowledged: str
    doubtful: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    """Every value that it may have had at some time, including the first."""

    def __post_init__(self) -> None:
        self.tried.append(self.acknowledged)


class TopicBook:
    __slots__ = (
        "deleted",
        "deletion_asked",
        "flush_changes",
        "flush_messages_of",
        "given_up",
        "name",
        "partitions",
        "partitions_asked",
        "replication_factor",
        "settings",
        "stays",
        "topic_id",
        "transactional",
    )

    def __init__(
        self,
        name: str,
        topic_id: bytes,
        partition_count: int,
        *,
        stays: bool,
        transactional: bool = False,
        replication_factor: int = 1,
    ) -> None:
        self.name = name
        self.replication_factor = replication_factor
        self.topic_id = topic_id
        self.stays = stays
        """It is never deleted, so clients may request it by name: no other topic will have that name."""
        self.transactional = transactional
        """Transactions write to it, and no record is deleted from it, neither by request nor by retention."""
        self.partitions = [PartitionBook(self, index) for index in range(partition_count)]
        self.partitions_asked = partition_count
        """More than there are while it is unknown whether a request for more was executed."""
        self.settings: dict[str, Setting] = {}
        self.flush_changes = 0
        """The number of requests to change flush.messages."""
        self.flush_messages_of: dict[str, str] = {}
        """In a cluster: the value in the metadata of each running node. A change may be acknowledged before all of them
        have applied it."""
        self.deletion_asked = False
        self.deleted = False
        self.given_up = False
        """There was a power loss while it was being deleted: its contents are no longer checked."""

    def __repr__(self) -> str:
        return self.name

    @property
    def may_elect_uncleanly(self) -> bool:
        """Whether a replica outside the ISR and ELR may have been allowed to lead, by any setting so far."""
        setting = self.settings.get(UNCLEAN_ELECTION)
        return setting is not None and "true" in setting.tried

    @property
    def flushed_since(self) -> int | None:
        """The change (0: the creation) since which flush.messages is 1; None if that is not certain everywhere."""
        setting = self.settings.get(FLUSH_MESSAGES)
        if setting is None:
            return None
        if any(value != "1" for value in (setting.acknowledged, *setting.doubtful, *self.flush_messages_of.values())):
            return None
        return self.flush_changes

    def grow(self, partition_count: int) -> None:
        for index in range(len(self.partitions), partition_count):
            self.partitions.append(PartitionBook(self, index))


@dataclass(slots=True)
class Counts:
    """How much happened, so that a person can see that a run did useful work."""

    requests: int = 0
    lost_requests: int = 0
    connections: int = 0
    records_sent: int = 0
    writes_acknowledged: int = 0
    """Batches, each counted once."""
    records_acknowledged: int = 0
    """Records, each counted once."""
    records_read: int = 0
    records_lost: int = 0
    topics_created: int = 0
    topics_deleted: int = 0
    sessions: int = 0
    """Of transactional producers."""
    transactions_committed: int = 0
    transactions_aborted: int = 0
    offsets_committed: int = 0
    assignments: int = 0
    """Given to members of groups."""
    errors: dict[str, int] = field(default_factory=dict)
    checks: int = 0

    def write_acknowledged(self, records: int) -> None:
        """With so many records that were not acknowledged before."""
        self.writes_acknowledged += records > 0
        self.records_acknowledged += records

    def error(self, name: str) -> None:
        self.errors[name] = self.errors.get(name, 0) + 1


class Ledger:
    def __init__(self) -> None:
        self.era = 0
        """The number of power losses so far."""
        self.topics: dict[bytes, TopicBook] = {}
        self.doubtful_names: list[str] = []
        """Topics whose creation was requested, and may or may not have happened, or may still happen."""
        self.producer_ids: dict[int, str] = {}
        self.counts = Counts()
        self.ticks = Ticks()
        self.transactions = TransactionLedger(self.ticks)
        self.coordinators = Coordinators()

    def live_topics(self) -> list[TopicBook]:
        """Topics whose deletion was not requested."""
        return [topic for topic in self.topics.values() if not topic.deletion_asked]

    def live_partitions(self, *, that_stay: bool = False) -> list[PartitionBook]:
        topics = [topic for topic in self.live_topics() if topic.stays or not that_stay]
        return [partition for topic in topics for partition in topic.partitions]

    def topic_named(self, name: str) -> TopicBook | None:
        return next((topic for topic in self.topics.values() if topic.name == name and not topic.deleted), None)

    def power_lost(self, machine: str = ALONE) -> None:
        """The machine of a node on its own, or one that may be the only one with some partition."""
        self.era += 1
        for topic in self.topics.values():
            for partition in topic.partitions:
                partition.power_lost(machine, self.era)
        self.transactions.power_lost()

    def give_up_deleted(self) -> None:
        """After a power loss, the topics that are being deleted are not read and no longer checked."""
        for topic in self.topics.values():
            topic.given_up = topic.deletion_asked

    def flushed(self, offsets: Iterable[tuple[TopicPartition, int]]) -> None:
        """Records, at the end of a life, what is on disk according to the node."""
        for (topic_id, index), offset in offsets:
            topic = self.topics.get(topic_id)
            if topic is not None and index < len(topic.partitions):
                partition = topic.partitions[index]
                partition.flushed = max(partition.flushed, offset)
