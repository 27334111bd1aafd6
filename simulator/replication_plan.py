"""What a seed decides about replication: how many replicas each topic has, and how many must have what is acknowledged.

Some topics promise little: one replica in sync is enough, or a replica that lacks records may be elected. The checker
knows what each may lose (`simulator.white_box.leadership_watch`).
"""

from dataclasses import replace

from simulator.cluster_settings import BROKER
from simulator.ledger import UNCLEAN_ELECTION
from simulator.plan import Plan, TopicPlan
from simulator.random import SimRandom

MIN_ISR = "min.insync.replicas"
MOST_REPLICAS = 3
UNCLEAN_CHANCE = 0.15


def with_replication(random: SimRandom, plan: Plan) -> Plan:
    brokers = sum(BROKER in role for role in plan.roles)
    most = min(MOST_REPLICAS, brokers)
    coordinators = {MIN_ISR: _in_sync(random, most)}
    return replace(
        plan,
        most_replicas=most,
        topics=[_replicated(random, topic, most) for topic in plan.topics],
        coordinator_settings=plan.coordinator_settings | coordinators,
        node_settings=plan.node_settings | _node_settings(random, most),
    )


def _replicated(random: SimRandom, topic: TopicPlan, most: int) -> TopicPlan:
    replicas = min(most, random.choice((1, 2, 3, 3, 3)))
    settings = {MIN_ISR: _in_sync(random, replicas)}
    if random.chance(UNCLEAN_CHANCE) and not topic.transactional and replicas > 1:
        settings[UNCLEAN_ELECTION] = "true"
    return replace(topic, replication_factor=replicas, settings=topic.settings | settings)


def _in_sync(random: SimRandom, replicas: int) -> str:
    return str(min(replicas, random.choice((1, 2, 2))))


def _node_settings(random: SimRandom, most: int) -> dict[str, str]:
    return {
        "offsets.topic.replication.factor": str(most),
        "transaction.state.log.replication.factor": str(most),
        "transaction.state.log.min.isr": _in_sync(random, most),
        "replica.lag.time.max.ms": str(random.choice((400, 1000, 3000, 10_000))),
        "replica.fetch.wait.max.ms": str(random.choice((200, 300, 400))),
        "replica.fetch.backoff.ms": str(random.choice((20, 200, 1000))),
        "replica.fetch.max.bytes": str(random.choice((1000, 1 << 20))),
    }
