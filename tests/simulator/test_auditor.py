"""The auditor of the simulator reads what no other client has read."""

from dataclasses import replace

from simulator.clients.plain_producer import PlainProducer
from simulator.cluster_plan import cluster_plan_of
from simulator.plan import TopicPlan
from simulator.world import World

ONE_LEADER = 1


def test_the_last_audit_reads_to_the_end_although_nobody_else_has_read_anything() -> None:
    topic = TopicPlan("topic", 1, {"internal.segment.bytes": "8000"}, replication_factor=2)
    plan = replace(cluster_plan_of(0, nodes=3, scale=0.2), topics=[topic], faults={}, least=None)
    report = World(0, plan, cast=lambda world: [PlainProducer(world.scene, "producer", ONE_LEADER)]).run()
    assert report.violation is None
    assert report.counts.records_read >= report.counts.records_acknowledged > 0
