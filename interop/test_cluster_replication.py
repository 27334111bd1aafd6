"""Followers of one kind copy from leaders of the other, through kills, pauses, truncations and compaction."""

import random
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import permutations
from pathlib import Path

import pytest

from interop.apache_kafka import ApacheKafka
from interop.counted_load import LEDGER, ORDERS, PARTITIONS, Load
from interop.mixed_cluster import MixedCluster, NodePlan, mixed_cluster, soon
from quire.protocol.records import iterate_records, walk_batches
from tests.wire.clients import Confluent, Message

QUIRE, KAFKA, THIRD, CONTROLLER = 1, 2, 3, 9
BROKERS = (QUIRE, KAFKA, THIRD)
ROTATED = [[QUIRE, KAFKA, THIRD], [KAFKA, THIRD, QUIRE], [THIRD, QUIRE, KAFKA]]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
SETTINGS = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "1500",
    "broker.session.timeout.ms": "6000",
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.01",
}
INTERNAL = ("__consumer_offsets", "__transaction_state")


@pytest.fixture(params=["quire", "kafka"])
def cluster(request: pytest.FixtureRequest, kafka: ApacheKafka, tmp_path: Path) -> Iterator[MixedCluster]:
    """One broker of each kind, and the third one and the controller of the named kind."""
    kinds = {QUIRE: "quire", KAFKA: "kafka", THIRD: request.param}
    plans = [NodePlan(id_, kind, "broker") for id_, kind in kinds.items()]
    plans.append(NodePlan(CONTROLLER, request.param, "controller"))
    with mixed_cluster(MixedCluster(kafka, tmp_path, plans, SETTINGS)) as running:
        yield running


def test_replicas_of_both_kinds_are_equal_after_each_was_killed(cluster: MixedCluster) -> None:
    first = cluster.nodes[QUIRE]
    rotated = {partition: ROTATED[partition % 3] for partition in range(PARTITIONS)}
    for topic in (ORDERS, LEDGER):
        cluster.create_topic(topic, first, assignments=rotated)
    cluster.create_topic("plain", first, assignments=dict(enumerate(ROTATED)))
    rolling = {"cleanup.policy": "compact", "segment.ms": "1000", "delete.retention.ms": "0"}
    cluster.create_topic("latest", first, assignments=dict(enumerate(ROTATED)), configs=rolling)
    cluster.wait_until_in_sync(ORDERS, LEDGER, "plain", "latest")
    for index in range(3):
        for codec in CODECS:
            written = [Message(b"%d %s" % (number, codec.encode()) * 20, b"%d" % number) for number in range(100)]
            Confluent().produce(
                cluster.bootstrap_servers, "plain", written, partition=index, compression=codec, idempotent=True
            )
    latest = write_latest(cluster)

    load = Load(cluster.bootstrap_servers)
    load.start()
    for node_id in BROKERS:
        load.wait_for_more()
        node = cluster.nodes[node_id]
        node.kill()
        # A transaction waits as long as librdkafka looks for the group's coordinator at the broker that is down.
        load.wait_for_more(transactions=0)
        node.start()
        cluster.wait_until_serving()
        cluster.wait_until_in_sync(ORDERS, LEDGER, *INTERNAL)
    load.wait_for_more()
    load.stop()
    print(load.judge())
    assert write_latest(cluster) == latest

    for topic in (ORDERS, LEDGER, "plain", "latest", *INTERNAL):
        cluster.wait_until_in_sync(topic)
    for node in cluster.nodes.values():
        node.stop()
    for topic, partitions in ((ORDERS, PARTITIONS), (LEDGER, PARTITIONS), ("plain", 3)):
        for index in range(partitions):
            name = f"{topic}-{index}"
            assert_equal(cluster, name, BROKERS)
    for index in range(3):
        found = [values_by_key(log_bytes(cluster, id_, f"latest-{index}")) for id_ in BROKERS]
        assert found == [latest] * 3


def test_in_sync_replicas_of_both_kinds_shrink_and_grow(cluster: MixedCluster) -> None:
    cluster.create_topic(ORDERS, cluster.nodes[QUIRE], assignments=dict(enumerate(ROTATED * 2)))
    cluster.wait_until_in_sync(ORDERS)
    # Without transactions: librdkafka repeats their offsets to a coordinator that does not answer.
    load = Load(cluster.bootstrap_servers, transactions=False)
    load.start()
    for node_id in BROKERS:
        load.wait_for_more(transactions=0)
        node = cluster.nodes[node_id]
        node.pause()
        soon(partial(is_out_of_sync, cluster, node_id))
        load.wait_for_more(transactions=0)
        node.resume()
        cluster.wait_until_in_sync(ORDERS)
    load.stop()
    print(load.judge())
    for node in cluster.nodes.values():
        node.stop()
    for index in range(PARTITIONS):
        assert_equal(cluster, f"{ORDERS}-{index}", BROKERS)


def is_out_of_sync(cluster: MixedCluster, node_id: int) -> bool:
    """Whether it is in no ISR of `orders`, according to another broker."""
    other = next(cluster.nodes[id_] for id_ in BROKERS if id_ != node_id)
    return all(node_id not in each.isr for each in cluster.replicas_of(ORDERS, other))


def write_latest(cluster: MixedCluster) -> dict[bytes, bytes]:
    """Every key many times, in every partition; the values that remain."""
    chance = random.Random(7)
    written = {}
    messages = []
    for number in range(2000):
        key = b"key %d" % chance.randrange(50)
        written[key] = b"value %d" % number
        messages.append(Message(written[key], key))
    for index in range(3):
        Confluent().produce(cluster.bootstrap_servers, "latest", messages, partition=index, compression="lz4")
    return written


def test_a_deposed_leader_of_either_kind_truncates_to_the_log_of_the_other(cluster: MixedCluster) -> None:
    pairs = list(permutations((QUIRE, KAFKA)))
    alone = {"min.insync.replicas": "1"}
    cluster.create_topic("short", cluster.nodes[QUIRE], assignments=dict(enumerate(pairs)), configs=alone)
    cluster.wait_until_in_sync("short")
    for index, (leader_id, follower_id) in enumerate(pairs):
        leader, follower = cluster.nodes[leader_id], cluster.nodes[follower_id]
        both = [Message(b"both %d" % number) for number in range(100)]
        Confluent().produce(cluster.bootstrap_servers, "short", both, partition=index, idempotent=True)
        follower.pause()
        try:
            # The leader answers the fetch that waits with this record, so the follower may have it.
            Confluent().produce(leader.address, "short", [Message(b"either")], partition=index, acks="1")
            lost = [Message(b"lost %d" % number) for number in range(50)]
            Confluent().produce(leader.address, "short", lost, partition=index, acks="1")
            leader.kill()
        finally:
            follower.resume()
        soon(partial(leads, cluster, follower_id, index))
        kept = [Message(b"kept %d" % number) for number in range(20)]
        Confluent().produce(cluster.bootstrap_servers, "short", kept, partition=index, idempotent=True)
        leader.start()
        cluster.wait_until_serving()
        cluster.wait_until_in_sync("short")
        expected = [message.value for message in [*both, *kept]]
        read = Confluent().consume(cluster.bootstrap_servers, "short", len(expected), partition=index)
        if read[len(both)].value == b"either":
            expected[len(both) : len(both)] = [b"either"]
            read = Confluent().consume(cluster.bootstrap_servers, "short", len(expected), partition=index)
        assert [message.value for message in read] == expected
    for node in cluster.nodes.values():
        node.stop()
    for index in range(len(pairs)):
        assert_equal(cluster, f"short-{index}", (QUIRE, KAFKA))


def leads(cluster: MixedCluster, node_id: int, partition: int) -> bool:
    return cluster.leaders_of("short", cluster.nodes[node_id])[partition] == node_id


def assert_equal(cluster: MixedCluster, name: str, broker_ids: Sequence[int]) -> None:
    """The same bytes, and the same leader epochs where there are records."""
    logs = [log_bytes(cluster, id_, name) for id_ in broker_ids]
    assert all(log == logs[0] for log in logs), f"the logs of {name} differ"
    *_, last = walk_batches(logs[0])
    epochs = [leader_epochs(cluster, id_, name, last.base_offset) for id_ in broker_ids]
    assert all(each == epochs[0] for each in epochs), f"the leader epochs of {name} differ: {epochs}"


def log_bytes(cluster: MixedCluster, node_id: int, name: str) -> bytes:
    """All segments; they may be divided differently."""
    folder = cluster.nodes[node_id].data_dir / name
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def leader_epochs(cluster: MixedCluster, node_id: int, name: str, up_to: int) -> list[list[int]]:
    """Epoch and start offset. A leader that wrote nothing has an epoch at the end that followers do not know."""
    path = cluster.nodes[node_id].data_dir / name / "leader-epoch-checkpoint"
    entries = [list(map(int, line.split())) for line in path.read_text().splitlines()[2:]]
    return [entry for entry in entries if entry[1] <= up_to]


def values_by_key(log: bytes) -> dict[bytes, bytes]:
    return {record.key or b"": record.value or b"" for record in iterate_records(log)}
