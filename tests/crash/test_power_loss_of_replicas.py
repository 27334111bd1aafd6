"""Replicas that lose power while clients write with acks=all: replication makes up for what was not synced.

A replica that may have lost the end of its log must not lead, and must not count as having what it has lost, until it
has copied that again. See `tests.crash.power_loss` for the machines.
"""

from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.crash.power_loss.powered_cluster import PoweredCluster, powered_cluster
from tests.crash.real_cluster import wait_while
from tests.crash.record_load import IDEMPOTENT, PARTITIONS, TOPIC, Load, create_topic, stored_values
from tests.wire.clients import WAIT_S

NODES = 3
LOSSES = 3
ACKS_PER_ROUND = 500
MOST_WAITING = 30
REPLICATED: dict[str, object] = {
    "log.segment.bytes": 1 << 20,
    "log.retention.ms": -1,
    "default.replication.factor": NODES,
    "min.insync.replicas": 2,
    "replica.lag.time.max.ms": 3000,
}


def test_leaders_that_lose_power_one_after_the_other_lose_nothing(tmp_path: Path) -> None:
    with powered_cluster(tmp_path, NODES, REPLICATED) as cluster:
        create_topic(cluster.bootstrap_servers, replicas=NODES)
        load = Load(cluster.bootstrap_servers, most_waiting=MOST_WAITING, **IDEMPOTENT)
        for seed in range(LOSSES):
            load.wait_for_more(ACKS_PER_ROUND)
            leader = leader_of(cluster, seed % PARTITIONS)
            cluster.lose_power(leader, seed=seed)
            load.wait_for_more(ACKS_PER_ROUND)
            cluster.start(leader)
            wait_until_in_sync(cluster, {1, 2, 3})
        load.wait_for_more(ACKS_PER_ROUND)
        load.finish()
        assert_nothing_is_lost(cluster, load)
        assert_replicas_are_equal(cluster, 1, 2, 3)


def test_the_last_replica_in_sync_may_lose_power(tmp_path: Path) -> None:
    """The other one is gone by then, and eligible: it was killed and has everything, so it leads."""
    with powered_cluster(tmp_path, NODES, REPLICATED) as cluster:
        create_on_nodes(cluster, 1, 2)
        load = Load(cluster.bootstrap_servers, most_waiting=MOST_WAITING, **IDEMPOTENT)
        load.wait_for_more(2 * ACKS_PER_ROUND)
        cluster.kill(2)
        wait_until_in_sync(cluster, {1}, told_by=3)
        cluster.lose_power(1, seed="last")
        cluster.start(1, 2)
        wait_until_in_sync(cluster, {1, 2})
        load.wait_for_more(ACKS_PER_ROUND)
        load.finish()
        assert_nothing_is_lost(cluster, load)
        assert_replicas_are_equal(cluster, 1, 2)


def test_all_replicas_may_lose_power_at_once_if_each_record_is_flushed(tmp_path: Path) -> None:
    with powered_cluster(tmp_path, NODES, REPLICATED | {"log.flush.interval.messages": 1}) as cluster:
        create_topic(cluster.bootstrap_servers, replicas=NODES)
        load = Load(cluster.bootstrap_servers, most_waiting=MOST_WAITING, **IDEMPOTENT)
        for seed in range(LOSSES):
            load.wait_for_more(ACKS_PER_ROUND)
            cluster.lose_power(seed=seed)
            cluster.start()
            wait_until_in_sync(cluster, {1, 2, 3})
        load.wait_for_more(ACKS_PER_ROUND)
        load.finish()
        assert_nothing_is_lost(cluster, load)
        assert_replicas_are_equal(cluster, 1, 2, 3)


def test_all_replicas_that_lose_power_at_once_unflushed_agree_on_a_prefix(tmp_path: Path) -> None:
    with powered_cluster(tmp_path, NODES, REPLICATED) as cluster:
        create_topic(cluster.bootstrap_servers, replicas=NODES)
        load = Load(cluster.bootstrap_servers, most_waiting=MOST_WAITING, **IDEMPOTENT)
        load.wait_for_more(2 * ACKS_PER_ROUND)
        cluster.kill()
        load.abandon()
        cluster.lose_power(seed="all")
        cluster.start()
        wait_until_in_sync(cluster, {1, 2, 3})
        lost = 0
        for partition in range(PARTITIONS):
            stored = [value for _, value in stored_values(cluster.bootstrap_servers, partition)]
            assert stored == load.sent[partition][: len(stored)]
            lost += max(0, len(load.acknowledged[partition]) - len(stored))
        print(f"lost {lost} of {load.count} acknowledged records")
        assert_replicas_are_equal(cluster, 1, 2, 3, may_be_empty=True)


def create_on_nodes(cluster: PoweredCluster, *nodes: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=[list(nodes)] * PARTITIONS)
    admin.create_topics([topic])[TOPIC].result(WAIT_S)


def partitions(cluster: PoweredCluster, told_by: int) -> dict[int, tuple[int, set[int]]]:
    """Leader and ISR by partition, as a node knows them."""
    try:
        topics = cluster.metadata(told_by).topics
    except OSError:
        return {}
    found = [partition for topic in topics if topic.name == TOPIC for partition in topic.partitions]
    return {each.partition_index: (each.leader_id, set(each.isr_nodes)) for each in found}


def leader_of(cluster: PoweredCluster, partition: int) -> int:
    return partitions(cluster, 1)[partition][0]


def wait_until_in_sync(cluster: PoweredCluster, isr: set[int], *, told_by: int = 1) -> None:
    """Until every partition has a leader and this ISR."""

    def wrong() -> str:
        found = partitions(cluster, told_by)
        is_right = len(found) == PARTITIONS and all(each[0] in isr and each[1] == isr for each in found.values())
        return "" if is_right else f"leaders and in-sync replicas are {found}, and not {isr}"

    wait_while(wrong)


def assert_nothing_is_lost(cluster: PoweredCluster, load: Load) -> None:
    assert sum(machine.changed_files + machine.changed_names for machine in cluster.machines.values())
    for partition in range(PARTITIONS):
        stored = stored_values(cluster.bootstrap_servers, partition)
        assert [offset for offset, _ in stored] == list(range(len(stored)))
        assert load.acknowledged[partition].items() <= dict(stored).items()
        assert [value for _, value in stored] == load.sent[partition], "each once, in the order sent"


def assert_replicas_are_equal(cluster: PoweredCluster, *nodes: int, may_be_empty: bool = False) -> None:
    """Byte for byte. Kills the nodes."""
    ends = {partition: high_watermark(cluster, partition) for partition in range(PARTITIONS)}
    assert may_be_empty or all(ends.values()), ends
    cluster.kill()
    for partition in range(PARTITIONS):
        folders = [cluster.nodes[node_id].data / f"{TOPIC}-{partition}" for node_id in nodes]
        logs = [b"".join(path.read_bytes() for path in sorted(folder.glob("*.log"))) for folder in folders]
        assert all(each == logs[0] for each in logs), f"partition {partition}: {list(map(len, logs))} bytes"


def high_watermark(cluster: PoweredCluster, partition: int) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "ends"})
    try:
        end: int = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(TOPIC, partition), timeout=WAIT_S)[1]
        return end
    finally:
        consumer.close()
