"""What clients asked for and what they were told: the other half of every check.

The ledger knows nothing of how a node works. Per partition it has every record that was sent, the offsets at which
records were acknowledged or read, and the furthest ends and starts anybody was told; per topic, what an administrator
was promised. Power losses divide a run into eras: what was told in an earlier one may have been lost, as far as it had
not been flushed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from simulator.ticks import Ticks
from simulator.transaction_ledger import TransactionLedger

RECORD_OVERHEAD_BYTES = 200
"""What a record may need besides its value: a batch of its own, key, headers, a codec's frame."""

FLUSH_MESSAGES = "flush.messages"

TopicPartition = tuple[bytes, int]
"""Topic id and index."""


@dataclass(slots=True)
class Written:
    """A record that was sent: the how-many-th of a producer's session, and how often."""

    session: str
    number: int
    idempotent: bool
    timestamp: int | None = None
    """As its producer says."""
    copies: int = 0


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


NOTHING_KNOWN = Floor(0, 0)


class PartitionBook:
    __slots__ = (
        "deletion_asked",
        "end_offset",
        "ever_read",
        "flushed",
        "index",
        "known",
        "looked_at",
        "places",
        "promised",
        "sent_bytes",
        "stable_offset",
        "start_offset",
        "survived",
        "topic",
        "written",
    )

    def __init__(self, topic: "TopicBook", index: int) -> None:
        self.topic = topic
        self.index = index
        self.written: dict[bytes, Written] = {}
        self.sent_bytes = 0
        """The most that the log can hold: every record ever sent, however often."""
        self.known: dict[int, Known] = {}
        self.places: dict[bytes, int] = {}
        """Where the records of idempotent producers are."""
        self.ever_read: dict[tuple[int, int], bytes] = {}
        """What was read at each leader epoch and offset; a power loss takes nothing of it away."""
        self.end_offset = 0
        """The highest high watermark that anybody was told."""
        self.start_offset = 0
        """The highest log start offset that anybody was told."""
        self.stable_offset = 0
        """The highest last stable offset that anybody was told."""
        self.deletion_asked = 0
        """The highest offset that somebody asked to delete records before."""
        self.flushed = 0
        """Everything below is on disk, as the log itself believes."""
        self.promised = 0
        """Everything below must be on disk, because somebody heard of it while flush.messages was 1."""
        self.survived: dict[int, int] = {}
        """For each era that is over, what was on disk at its end."""
        self.looked_at = 0
        """The last era in which somebody has seen what the power loss before left."""

    def __repr__(self) -> str:
        return f"{self.topic.name}-{self.index}"

    def floor(self, *, afresh: bool = False) -> Floor:
        """`afresh`, after a power loss, where the log ended counts for nothing; where it started still does."""
        if afresh:
            return Floor(0, self.start_offset)
        return Floor(self.end_offset, self.start_offset, self.stable_offset)

    def send(self, value: bytes, session: str, number: int, *, idempotent: bool, timestamp: int | None = None) -> None:
        """The record is on its way, once more if it was before."""
        written = self.written.setdefault(value, Written(session, number, idempotent, timestamp))
        written.copies += 1
        self.sent_bytes += len(value) + RECORD_OVERHEAD_BYTES

    def give_up_order(self, value: bytes) -> None:
        """A record may be in the log without those before it, but still not twice: it is a session of its own now."""
        written = self.written[value]
        written.session += f"?{written.number}"

    def learn(self, offset: int, known: Known, *, idempotent: bool) -> None:
        if offset not in self.known or known.timestamp is not None:
            self.known[offset] = known
        if idempotent:
            self.places[known.value] = offset
        self.end_offset = max(self.end_offset, offset + 1)

    def cut(self, start_offset: int, end_offset: int) -> int:
        """After a power loss the log was found to be this. Returns how many known records it lost."""
        lost = self.forget(end_offset)
        self.end_offset = end_offset
        self.start_offset = max(self.start_offset, start_offset)
        if end_offset < self.stable_offset or self.topic.flushed_since != 0:
            # A marker may have been lost, and what it ended is open again.
            self.stable_offset = 0
        return lost

    def forget(self, offset: int) -> int:
        """What was known to be there, or behind it, is lost. Returns how many records that are."""
        lost = [each for each in self.known if each >= offset]
        for each in lost:
            self.places.pop(self.known.pop(each).value, None)
        return len(lost)


@dataclass(slots=True)
class Setting:
    """One configuration key of a topic: the value last acknowledged, and those that may or may not have been set."""

    acknowledged: str
    doubtful: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    """Every value that it may have had at some time, the first one included."""

    def __post_init__(self) -> None:
        self.tried.append(self.acknowledged)


class TopicBook:
    __slots__ = (
        "deleted",
        "deletion_asked",
        "flush_changes",
        "given_up",
        "name",
        "partitions",
        "partitions_asked",
        "settings",
        "stays",
        "topic_id",
        "transactional",
    )

    def __init__(
        self, name: str, topic_id: bytes, partition_count: int, *, stays: bool, transactional: bool = False
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.stays = stays
        """Nobody ever deletes it, so it may be asked for by name: no other topic will ever be called so."""
        self.transactional = transactional
        """Transactions write to it, and nobody takes records from it: neither by request nor by retention."""
        self.partitions = [PartitionBook(self, index) for index in range(partition_count)]
        self.partitions_asked = partition_count
        """More than there are while nobody knows whether a request for more was carried out."""
        self.settings: dict[str, Setting] = {}
        self.flush_changes = 0
        """How often somebody asked to change flush.messages."""
        self.deletion_asked = False
        self.deleted = False
        self.given_up = False
        """A power loss came while it was being deleted: nobody looks any more what is in it."""

    def __repr__(self) -> str:
        return self.name

    @property
    def flushed_since(self) -> int | None:
        """Since which change (0: from the beginning) flush.messages is 1; None when that is not certain now."""
        setting = self.settings.get(FLUSH_MESSAGES)
        if setting is None or any(value != "1" for value in (setting.acknowledged, *setting.doubtful)):
            return None
        return self.flush_changes

    def grow(self, partition_count: int) -> None:
        for index in range(len(self.partitions), partition_count):
            self.partitions.append(PartitionBook(self, index))


@dataclass(slots=True)
class Counts:
    """How much happened, for people to see that a run was worth something."""

    requests: int = 0
    lost_requests: int = 0
    connections: int = 0
    records_sent: int = 0
    records_acknowledged: int = 0
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

    def error(self, name: str) -> None:
        self.errors[name] = self.errors.get(name, 0) + 1


class Ledger:
    def __init__(self) -> None:
        self.era = 0
        self.topics: dict[bytes, TopicBook] = {}
        self.doubtful_names: list[str] = []
        """Topics that somebody asked to create without learning whether that happened, or happens yet."""
        self.producer_ids: dict[int, str] = {}
        self.counts = Counts()
        self.ticks = Ticks()
        self.transactions = TransactionLedger(self.ticks)

    def live_topics(self) -> list[TopicBook]:
        """Topics that nobody has asked to delete."""
        return [topic for topic in self.topics.values() if not topic.deletion_asked]

    def live_partitions(self, *, that_stay: bool = False) -> list[PartitionBook]:
        topics = [topic for topic in self.live_topics() if topic.stays or not that_stay]
        return [partition for topic in topics for partition in topic.partitions]

    def topic_named(self, name: str) -> TopicBook | None:
        return next((topic for topic in self.topics.values() if topic.name == name and not topic.deleted), None)

    def power_lost(self) -> None:
        for topic in self.topics.values():
            for partition in topic.partitions:
                partition.survived[self.era] = partition.flushed
        self.era += 1
        self.transactions.power_lost()

    def give_up_deleted(self) -> None:
        """What a power loss left of topics that are being deleted has not been looked at, and will not be."""
        for topic in self.topics.values():
            topic.given_up = topic.deletion_asked

    def flushed(self, offsets: Iterable[tuple[TopicPartition, int]]) -> None:
        """At the end of a life: what the node believes to have on disk."""
        for (topic_id, index), offset in offsets:
            topic = self.topics.get(topic_id)
            if topic is not None and index < len(topic.partitions):
                partition = topic.partitions[index]
                partition.flushed = max(partition.flushed, offset)
