"""What a seed decides about a cluster: how many nodes, their roles, who votes, timeouts, and the faults between nodes.

`quorum_plan_of` is a quorum of controllers, with scribes instead of clients; brokers may observe it.
"""

from dataclasses import replace

from simulator.cluster_settings import BOTH, BROKER, CONTROLLER
from simulator.least import Least
from simulator.plan import (
    FAULTS,
    FAULTS_BETWEEN_NODES,
    FAULTS_OF_REPLICAS,
    FAULTS_OF_TIME_AND_CONNECTIONS,
    Plan,
    plan_of,
)
from simulator.random import SimRandom
from simulator.replication_plan import with_replication
from simulator.white_box.disk_mover import mover_settings

VOTERS = (3, 3, 3, 5)
FEWEST_NODES, MOST_NODES = 3, 5
FEWEST_BROKERS = 2
DURATION_MS = (60_000.0, 61_000.0)
LEAST = Least(seconds=60.0, writes=2000, faults=10)
"""Of a seed at full length."""
SHORTEST = {
    "log.cleaner.backoff.ms": 200,
    "log.retention.check.interval.ms": 500,
    "log.flush.offset.checkpoint.interval.ms": 500,
    "log.flush.start.offset.checkpoint.interval.ms": 500,
    "replica.high.watermark.checkpoint.interval.ms": 500,
    "metadata.log.max.snapshot.interval.ms": 3000,
    "metadata.log.max.record.bytes.between.snapshots": 4000,
}
"""Of a seed at full length: what is repeated. In a shorter one it must happen more often to happen at all."""
PACE = 2.5
REASSIGNS_CHANCE = 0.5
MOVES_DISKS_CHANCE = 0.5
OBSERVERS = (0, 0, 1, 2)
"""Brokers beside three controllers."""


def quorum_plan_of(seed: int, *, nodes: int | None = None, scale: float = 1.0) -> Plan:
    random = SimRandom(seed).stream("quorum")
    voters = random.choice(VOTERS)
    observers = random.stream("observers").choice(OBSERVERS) if voters == min(VOTERS) else 0
    roles = (CONTROLLER,) * voters + (BROKER,) * observers if nodes is None else (CONTROLLER,) * nodes
    plan = replace(
        plan_of(seed),
        duration_ms=scale * random.between(5_000.0, 25_000.0),
        faults=_faults(random),
        fault_pause_ms=random.choice((150.0, 500.0, 2000.0)),
        roles=roles,
        scribes=True,
        keeps_majority=random.chance(0.3),
        node_settings=plan_of(seed).node_settings | _quorum_settings(random) | _session_settings(random),
    )
    return _with_voters(random.stream("voters"), plan)


def cluster_plan_of(seed: int, *, nodes: int | None = None, scale: float = 1.0) -> Plan:
    """Three to five nodes, or as many as `nodes`: each a broker, a controller, or both."""
    if nodes == 1:
        return plan_of(seed, scale=scale)
    random = SimRandom(seed).stream("cluster")
    drawn = FEWEST_NODES + random.below(MOST_NODES - FEWEST_NODES + 1)
    count = nodes or drawn
    plan = plan_of(seed)
    plan = replace(
        plan,
        least=LEAST if scale >= 1.0 else None,
        duration_ms=scale * random.between(*DURATION_MS),
        pace=PACE,
        faults=_faults(random) | _faults_of_replicas(random.stream("faults of replicas")),
        fault_pause_ms=random.choice((600.0, 1500.0, 4000.0)),
        roles=_roles(random.stream("roles"), count),
        keeps_majority=random.chance(0.5),
        node_settings=_repeated(plan.node_settings, scale) | _quorum_settings(random) | _session_settings(random),
    )
    plan = with_replication(SimRandom(seed).stream("replication"), plan)
    rebalance = _rebalance_settings(SimRandom(seed).stream("leader rebalance"))
    plan = replace(plan, node_settings=plan.node_settings | rebalance)
    plan = replace(plan, reassigns=SimRandom(seed).stream("reassignments").chance(REASSIGNS_CHANCE))
    plan = _with_disk_moves(SimRandom(seed).stream("disk moves"), plan)
    return _with_voters(random.stream("voters"), plan)


def _with_disk_moves(random: SimRandom, plan: Plan) -> Plan:
    if not random.chance(MOVES_DISKS_CHANCE):
        return plan
    return replace(plan, moves_disks=True, node_settings=plan.node_settings | mover_settings(random))


def _rebalance_settings(random: SimRandom) -> dict[str, str]:
    """In half of the seeds leaderships return to the first replicas while faults go on."""
    return {"leader.imbalance.check.interval.seconds": str(random.choice((1, 4, 300, 300)))}


def _repeated(settings: dict[str, str], scale: float) -> dict[str, str]:
    if scale < 1.0:
        return settings
    return settings | {name: str(max(shortest, int(settings[name]))) for name, shortest in SHORTEST.items()}


def _with_voters(random: SimRandom, plan: Plan) -> Plan:
    """Half of the quorums are dynamic from the beginning, and a third of the others become so."""
    if random.chance(0.5):
        return replace(plan, changes_voters=random.chance(0.3))
    controllers = sum(CONTROLLER in roles for roles in plan.roles)
    return replace(
        plan,
        first_voters=random.choice((1 + random.below(controllers), controllers)),
        auto_join=random.chance(0.5),
        changes_voters=random.chance(0.7),
    )


def _roles(random: SimRandom, count: int) -> tuple[str, ...]:
    """Half of the clusters are combined. Others have one or three voters before brokers that only observe.

    There are always two brokers at least, so that topics are replicated.
    """
    if random.chance(0.5):
        return (BOTH,) * count
    voters = random.choice([voters for voters in (1, 3, 3) if voters < count])
    kinds = random.choice(((CONTROLLER,), (CONTROLLER,), (BOTH,), (BOTH, CONTROLLER)))
    drawn = tuple(random.choice(kinds) for _ in range(voters)) + (BROKER,) * (count - voters)
    lacking = FEWEST_BROKERS - sum(BROKER in role for role in drawn)
    return (BOTH,) * lacking + drawn[lacking:] if lacking > 0 else drawn


def _faults(random: SimRandom) -> dict[str, int]:
    kinds = (*FAULTS, *FAULTS_OF_TIME_AND_CONNECTIONS, *FAULTS_BETWEEN_NODES)
    return {kind: random.choice((0, 1, 1, 2, 4)) for kind in kinds}


def _faults_of_replicas(random: SimRandom) -> dict[str, int]:
    return {kind: random.choice((0, 1, 2)) for kind in FAULTS_OF_REPLICAS}


def _quorum_settings(random: SimRandom) -> dict[str, str]:
    return {
        "controller.quorum.election.timeout.ms": str(random.choice((150, 400, 1000))),
        "controller.quorum.election.backoff.max.ms": str(random.choice((100, 1000))),
        "controller.quorum.fetch.timeout.ms": str(random.choice((300, 800, 2000))),
        "controller.quorum.request.timeout.ms": str(random.choice((300, 2000))),
        "controller.quorum.retry.backoff.ms": str(random.choice((5, 20))),
        "metadata.max.idle.interval.ms": str(random.choice((250, 500))),
    }


def _session_settings(random: SimRandom) -> dict[str, str]:
    heartbeat_ms = random.choice((100, 300, 2000))
    return {
        "broker.heartbeat.interval.ms": str(heartbeat_ms),
        "broker.session.timeout.ms": str(heartbeat_ms * random.choice((4, 6))),
    }
