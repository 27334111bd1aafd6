"""What a seed decides: the node's settings, the topics, the clients, the pace. Drawn once, at the start."""

from dataclasses import dataclass, field, replace

from simulator.least import Least
from simulator.limits import Small, small_limits, small_settings
from simulator.random import SimRandom

FAULTS = (
    "kill",
    "power loss",
    "clean stop",
    "broken connections",
    "cut network",
    "bad network",
    "slow disk",
    "disk error",
    "full disk",
    "clock jump",
    "pause",
    "bad own requests",
)
FAULTS_OF_TIME_AND_CONNECTIONS = ("clock drift", "refused connections")
FAULTS_BETWEEN_NODES = ("partition", "isolation", "several at once", "slow links")
FAULTS_OF_REPLICAS = ("flipped bits",)

CONSUMER_SESSION_TIMEOUT = "group.consumer.session.timeout.ms"

FLUSH_POLICIES: tuple[dict[str, str], ...] = (
    {},
    {},
    {"flush.messages": "1"},
    {"flush.messages": "1"},
    {"flush.messages": "5"},
    {"flush.ms": "100"},
    {"flush.messages": "20", "flush.ms": "1000"},
)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    name: str
    partitions: int
    settings: dict[str, str]
    transactional: bool = False
    """Transactions write to it."""
    replication_factor: int = 1


@dataclass(frozen=True, slots=True)
class TransactionalPlan:
    """One transactional id."""

    protocols: tuple[int, ...]
    """One producer for each, with this transaction protocol. Several compete for the id."""
    abandons: bool
    """Whether the last transaction is left open, for the coordinator to abort it."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A group with members."""

    name: str
    dynamic: int
    static: int
    double: bool
    """Whether another client uses the instance id of the first static member while there are faults."""
    consumer_protocol: bool = False
    """Whether it uses the protocol of KIP-848, not the classic one."""
    mixed: int = 0
    """How many members of a KIP-848 group use the classic protocol."""


@dataclass(frozen=True, slots=True)
class Plan:
    duration_ms: float
    """How long faults happen."""
    faults: dict[str, int]
    """The kinds of faults (see `simulator.faults`) and how often each comes, relative to the others."""
    fault_pause_ms: float
    """The average time between two faults."""
    node_settings: dict[str, str]
    topics: list[TopicPlan]
    plain_acks: list[int]
    """One plain producer for each, with these acks."""
    idempotent_producers: int
    consumers: int
    session_consumers: int
    misbehaviour: float
    vandal: bool
    durable: bool = True
    """Whether coordinators, and the topics that transactions write to, flush at every message."""
    coordinator_settings: dict[str, str] = field(default_factory=dict)
    """Of the topics that coordinators keep their state in."""
    transactional: list[TransactionalPlan] = field(default_factory=list)
    committed_consumers: int = 0
    offset_groups: list[str] = field(default_factory=list)
    """Groups without members, for which consumers and transactions commit offsets."""
    groups: list[GroupPlan] = field(default_factory=list)
    own_producers: int = 0
    own_transactional: list[TransactionalPlan] = field(default_factory=list)
    own_consumers: int = 0
    """Quire's own client, as producers, and as consumers of all records and of committed ones in turn."""
    roles: tuple[str, ...] = ()
    """The process.roles of every node in a cluster; empty for a node on its own."""
    first_voters: int = 0
    """How many controllers a dynamic quorum is formatted with; 0 if the settings name the voters (a static quorum)."""
    auto_join: bool = False
    """Whether the other controllers of a dynamic quorum ask to vote."""
    changes_voters: bool = False
    """Whether an operator adds and removes voters; that of a static quorum upgrades it first."""
    reassigns: bool = False
    """Whether an operator moves replicas between brokers."""
    moves_disks: bool = False
    """Whether an operator moves replicas between the data directories of nodes."""
    scribes: bool = False
    """Scribes write to the active controller (see `simulator.white_box.scribe`), and there are no other clients."""
    most_replicas: int = 1
    """The largest replication factor of topics that are created meanwhile."""
    pace: float = 1.0
    """How much longer than usual clients rest between requests, so that a long run has as many as a short one."""
    keeps_majority: bool = False
    """Whether faults leave a majority of the voters at work at any time."""
    least: Least | None = None
    limits: Small = field(default_factory=dict)
    """Limits of the node's code that are smaller than usual; those that are settings are in `node_settings`."""

    @property
    def nodes(self) -> int:
        return max(1, len(self.roles))


def plan_of(seed: int, *, scale: float = 1.0) -> Plan:
    """`scale` 1 is a run of about a second of real time."""
    random = SimRandom(seed).stream("plan")
    compaction = SimRandom(seed).stream("compaction")
    plan = _with_transactions(SimRandom(seed).stream("transactions"), _without_coordinators(random, compaction, scale))
    plan = _with_groups(SimRandom(seed).stream("groups"), plan)
    plan = _with_own_clients(SimRandom(seed).stream("own clients"), plan)
    plan = _with_reserve(SimRandom(seed).stream("reserve"), plan)
    plan = _with_more_faults(SimRandom(seed).stream("more faults"), plan)
    return _with_small_limits(SimRandom(seed).stream("limits"), plan)


def _with_more_faults(random: SimRandom, plan: Plan) -> Plan:
    more = {kind: random.choice((0, 0, 1, 2)) for kind in FAULTS_OF_TIME_AND_CONNECTIONS}
    return replace(plan, faults=plan.faults | more)


def _without_coordinators(random: SimRandom, compaction: SimRandom, scale: float) -> Plan:
    return Plan(
        duration_ms=scale * random.between(2_000.0, 8_000.0),
        faults={kind: random.choice((0, 1, 1, 2, 4)) for kind in FAULTS},
        fault_pause_ms=random.choice((150.0, 400.0, 1000.0)),
        node_settings=_node_settings(random) | _cleaner_settings(compaction),
        topics=[
            _perhaps_compacted(compaction, _topic(random, f"topic-{number}")) for number in range(1 + random.below(3))
        ],
        plain_acks=[random.choice((0, 1, 1, -1)) for _ in range(1 + random.below(3))],
        idempotent_producers=1 + random.below(3),
        consumers=random.below(2),
        session_consumers=1 + random.below(2),
        misbehaviour=random.choice((0.0, 0.01, 0.05)),
        vandal=random.chance(0.3),
    )


def _node_settings(random: SimRandom) -> dict[str, str]:
    return {
        "log.dirs": random.choice(("/data", "/data", "/data", "/data/a,/data/b")),
        "auto.create.topics.enable": "false",
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((100, 1000, 60_000))),
        "log.flush.start.offset.checkpoint.interval.ms": str(random.choice((100, 1000, 60_000))),
        "log.flush.interval.ms": str(2**63 - 1),
        "log.flush.scheduler.interval.ms": str(random.choice((2**63 - 1, 2**63 - 1, 400))),
        "replica.high.watermark.checkpoint.interval.ms": str(random.choice((100, 5000))),
        "metadata.log.max.record.bytes.between.snapshots": str(random.choice((500, 3000, 20_000_000))),
        "metadata.log.max.snapshot.interval.ms": str(random.choice((500, 3_600_000))),
        "metadata.max.retention.bytes": str(random.choice((2000, 100_000_000))),
        "metadata.max.retention.ms": str(random.choice((1000, 604_800_000))),
        "max.incremental.fetch.session.cache.slots": str(random.choice((1, 1000))),
        "producer.id.expiration.check.interval.ms": "1000",
        "log.initial.task.delay.ms": str(random.choice((0, 500, 30_000))),
        "log.retention.check.interval.ms": str(random.choice((100, 1000, 300_000))),
    }


def _cleaner_settings(random: SimRandom) -> dict[str, str]:
    return {
        "log.cleaner.backoff.ms": str(random.choice((20, 200, 1000))),
        "log.cleaner.threads": str(random.choice((1, 2))),
        "log.cleaner.io.max.bytes.per.second": str(random.choice((20_000, 1_000_000, 1_000_000_000))),
    }


def _perhaps_compacted(random: SimRandom, topic: TopicPlan) -> TopicPlan:
    """Keeps the policy delete in a compacted topic; without it, DeleteRecords would be refused."""
    if not random.chance(0.3):
        return topic
    settings = {
        "cleanup.policy": "compact,delete",
        "min.cleanable.dirty.ratio": str(random.choice((0.01, 0.3))),
        "min.compaction.lag.ms": str(random.choice((0, 0, 300))),
        "internal.segment.bytes": str(random.choice((8000, 20_000))),
    }
    return replace(topic, settings=topic.settings | settings)


def _topic(random: SimRandom, name: str) -> TopicPlan:
    settings = {
        "internal.segment.bytes": str(random.choice((8000, 20_000, 100_000, 1 << 30))),
        "index.interval.bytes": str(random.choice((0, 300, 4096))),
        "file.delete.delay.ms": str(random.choice((0, 500, 60_000))),
        "compression.type": random.choice(("producer", "producer", "producer", "zstd", "uncompressed")),
        "message.timestamp.type": random.choice(("CreateTime", "CreateTime", "LogAppendTime")),
    }
    if random.chance(0.3):
        settings["segment.ms"] = str(random.choice((500, 3000)))
    if random.chance(0.2):
        settings["segment.index.bytes"] = "24"
    if random.chance(0.3):
        settings["retention.ms"] = str(random.choice((300, 1000, 3000)))
    if random.chance(0.3):
        settings["retention.bytes"] = str(random.choice((0, 15_000, 40_000)))
    settings |= random.choice(FLUSH_POLICIES)
    return TopicPlan(name, 1 + random.below(3), settings)


def _with_transactions(random: SimRandom, plan: Plan) -> Plan:
    durable = random.chance(0.7)
    kept = {"flush.messages": "1"} if durable else {}
    coordinator_settings = dict(kept)
    if random.chance(0.5):
        coordinator_settings |= {"internal.segment.bytes": "4000", "min.cleanable.dirty.ratio": "0.01"}
    return replace(
        plan,
        node_settings=plan.node_settings | _transaction_settings(random),
        topics=[*plan.topics, _transactional_topic(random, "ledger", kept)],
        durable=durable,
        coordinator_settings=coordinator_settings,
        transactional=[
            TransactionalPlan(random.choice(((1,), (2,), (2,), (1, 2), (2, 2))), random.chance(0.3))
            for _ in range(1 + random.below(2))
        ],
        committed_consumers=1,
        offset_groups=["copier"],
    )


def _transaction_settings(random: SimRandom) -> dict[str, str]:
    return {
        "offsets.topic.num.partitions": str(1 + random.below(3)),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": str(1 + random.below(3)),
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(random.choice((100, 1000))),
    }


def _transactional_topic(random: SimRandom, name: str, kept: dict[str, str]) -> TopicPlan:
    """No record is ever deleted from it, so that a transaction can be checked as a whole."""
    settings = {
        "internal.segment.bytes": str(random.choice((8000, 20_000, 1 << 30))),
        "index.interval.bytes": str(random.choice((0, 300, 4096))),
        "compression.type": random.choice(("producer", "producer", "zstd", "uncompressed")),
        "retention.ms": "-1",
    }
    return TopicPlan(name, 2 + random.below(2), settings | kept, transactional=True)


def _with_groups(random: SimRandom, plan: Plan) -> Plan:
    settings = {
        "group.min.session.timeout.ms": "100",
        "group.initial.rebalance.delay.ms": str(random.choice((0, 0, 300))),
        "group.consumer.min.session.timeout.ms": "100",
        "group.consumer.min.heartbeat.interval.ms": "10",
        CONSUMER_SESSION_TIMEOUT: str(random.choice((600, 2000))),
        "group.consumer.heartbeat.interval.ms": str(random.choice((60, 150))),
        "group.consumer.assignment.interval.ms": str(random.choice((0, 0, 200))),
    }
    groups = [_group(random, f"group-{number}") for number in range(1 + random.below(2))]
    return replace(plan, node_settings=plan.node_settings | settings, groups=groups)


def _group(random: SimRandom, name: str) -> GroupPlan:
    static, consumer_protocol = random.below(3), random.chance(0.5)
    double = static > 0 and not consumer_protocol and random.chance(0.3)
    dynamic = 1 + random.below(3)
    mixed = 1 + random.below(2) if consumer_protocol and random.chance(0.4) else 0
    return GroupPlan(name, dynamic, static, double, consumer_protocol, mixed)


def _with_own_clients(random: SimRandom, plan: Plan) -> Plan:
    return replace(
        plan,
        own_producers=random.below(2),
        own_transactional=[
            TransactionalPlan(random.choice(((1,), (2,), (2,), (1, 2), (2, 2))), random.chance(0.3))
            for _ in range(random.below(2))
        ],
        own_consumers=random.below(3),
    )


def _with_reserve(random: SimRandom, plan: Plan) -> Plan:
    """No reserve, one that is soon used up, or one that lasts."""
    settings = {"quire.reserve.bytes": str(random.choice((0, 1000, 50_000)))}
    return replace(plan, node_settings=plan.node_settings | settings)


def _with_small_limits(random: SimRandom, plan: Plan) -> Plan:
    """A fifth of the seeds keeps the normal limits."""
    if random.chance(0.2):
        return plan
    settings = small_settings(random.stream("settings"))
    return replace(plan, node_settings=plan.node_settings | settings, limits=small_limits(random.stream("constants")))
