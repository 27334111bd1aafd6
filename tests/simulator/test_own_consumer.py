"""Quire's own consumer in the simulation: it reaches the end of its partitions, and reports that."""

from dataclasses import replace

from simulator.clients.own_consumer import OwnConsumer
from simulator.clients.own_producer import OwnProducer
from simulator.plan import plan_of
from simulator.random import SimRandom
from simulator.world import World


class BadLuck(SimRandom):
    """Random choices always take the rare branch."""

    def chance(self, probability: float) -> bool:
        return True


def test_a_consumer_that_restarts_whenever_it_may_still_reaches_the_end() -> None:
    def unlucky(world: World) -> OwnConsumer:
        consumer = OwnConsumer(world.scene, "consumer", read_committed=False)
        consumer.random = BadLuck(0)
        return consumer

    plan = replace(plan_of(0, scale=0.5), faults={})
    outcome = World(0, plan, cast=lambda world: [OwnProducer(world.scene, "producer"), unlucky(world)]).run()
    assert outcome.violation is None
    assert outcome.counts.records_read > 0
