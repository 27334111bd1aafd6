"""min.insync.replicas=1: what the leader alone has is acknowledged, and lost only in an unclean election.

Without that, the partition has no leader until the node returns that has everything. With
`unclean.leader.election.enable` another replica leads at once, and the logs say what is lost. The producer of that test
is not idempotent: an idempotent one would notice that its records are gone, and end. A consumer that has read what is
lost learns of it, although there are other records at its offset by then (KIP-320).
"""

import re
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.crash.dedicated_cluster import DedicatedCluster, dedicated_cluster
from tests.crash.real_cluster import wait_while
from tests.crash.replicated_cluster import NODES, TOPIC, create_replicated, not_led_by, wait_until_in_sync
from tests.crash.replicated_load import PARTITIONS, WAIT_S, PartitionOffset, Writer, client_settings
from tests.crash.verdict import Verdict, judge_writer, missing, read_all

ALONE = {"min.insync.replicas": "1"}
UNCLEAN = {"unclean.leader.election.enable": "true"}
ROUNDS = 9


def test_a_partition_waits_for_the_only_replica_that_has_everything(tmp_path: Path) -> None:
    with dedicated_cluster(tmp_path) as cluster:
        wait_for_the_only_replica(cluster, TOPIC, 1)


def test_an_unclean_election_loses_what_one_replica_alone_had_and_says_so(tmp_path: Path) -> None:
    with dedicated_cluster(tmp_path) as cluster:
        lose_what_one_replica_alone_had(cluster, TOPIC, 1)


@pytest.mark.soak
def test_many_unclean_elections_lose_only_what_one_replica_alone_had(tmp_path: Path) -> None:
    with dedicated_cluster(tmp_path) as cluster:
        for number in range(ROUNDS):
            last = 1 + number % NODES
            wait_for_the_only_replica(cluster, f"waiting-{number}", last)
            lose_what_one_replica_alone_had(cluster, f"unclean-{number}", last)


def wait_for_the_only_replica(cluster: DedicatedCluster, topic: str, last: int) -> None:
    create_replicated(cluster.bootstrap_servers, topic, config=ALONE)
    writer, _ = written_by_one(cluster, topic, last, idempotent=True)
    cluster.kill(last)
    cluster.start(*(each for each in cluster.nodes if each != last))
    wait_while(lambda: not_led_by(cluster.bootstrap_servers, topic, {-1}))
    cluster.start(last)
    wait_until_in_sync(cluster.bootstrap_servers, topic)
    writer.wait_for_acks()
    writer.stop()
    judge_writer(writer, read_all(cluster.bootstrap_servers, topic)).assert_clean()
    logs = cluster.logs()
    assert f"unclean partition={topic}-" not in logs and f"records lost partition={topic}-" not in logs


def lose_what_one_replica_alone_had(cluster: DedicatedCluster, topic: str, last: int) -> None:
    create_replicated(cluster.bootstrap_servers, topic, config=ALONE | UNCLEAN)
    writer, everywhere = written_by_one(cluster, topic, last, idempotent=False)
    alone = writer.acknowledged.copy()
    newest = max(offset for partition, offset in alone if partition == 0)
    reached = read_on(cluster, TopicPartition(topic, 0, newest))
    cluster.kill(last)
    others = [each for each in cluster.nodes if each != last]
    cluster.start(*others)
    wait_while(lambda: not_led_by(cluster.bootstrap_servers, topic, set(others)))
    cluster.start(last)
    wait_until_in_sync(cluster.bootstrap_servers, topic)
    writer.wait_for_acks()
    writer.wait_for(
        lambda: writer.last_acknowledged[0] > reached.offset, f"no record is written beyond the lost offset {reached}"
    )
    truncated = read_on(cluster, reached)
    writer.stop()
    stored = read_all(cluster.bootstrap_servers, topic)
    verdict = Verdict(acknowledged=len(alone), lost=missing(alone, stored))
    print(f"before the unclean election: {verdict}; of {len(everywhere)} on all replicas {missing(everywhere, stored)}")
    assert verdict.lost > 0
    assert missing(everywhere, stored) == 0
    assert isinstance(truncated, KafkaError)
    assert "truncat" in truncated.str().lower(), "the consumer must not go on behind records that it never saw"
    logs = cluster.logs()
    for partition in range(PARTITIONS):
        assert f"leader elected unclean partition={topic}-{partition} " in logs
        # The node knows which records were committed only if the checkpoint was written before the kill.
        assert re.search(rf"(replica truncated|committed records lost) partition={topic}-{partition} from=", logs)


def read_on(cluster: DedicatedCluster, position: TopicPartition) -> Any:
    """A consumer's position after the next record, with the leader epoch of that, or the error that it gets instead."""
    settings = {"group.id": "reader", "auto.offset.reset": "error", "enable.auto.commit": False}
    consumer = Consumer(client_settings(cluster.bootstrap_servers, **settings))
    try:
        consumer.assign([position])
        message = consumer.poll(WAIT_S)
        assert message is not None, f"{position}: no record after {WAIT_S:g} s"
        if message.error() is not None:
            return message.error()
        return TopicPartition(message.topic(), 0, message.offset() + 1, leader_epoch=message.leader_epoch())
    finally:
        consumer.close()


def written_by_one(
    cluster: DedicatedCluster, topic: str, last: int, *, idempotent: bool
) -> tuple[Writer, dict[PartitionOffset, bytes]]:
    """A writer whose last acknowledged records only the node `last` has, and earlier ones, which all replicas have."""
    settings: dict[str, Any] = {"enable.idempotence": idempotent, "acks": "all"}
    writer = Writer(cluster.bootstrap_servers, topic, **settings)
    writer.start()
    for _ in range(20):
        writer.wait_for_acks()
    everywhere = writer.acknowledged.copy()
    wait_until_in_sync(cluster.bootstrap_servers, topic)
    cluster.kill(*(each for each in cluster.nodes if each != last))
    wait_while(lambda: not_led_by(cluster.bootstrap_servers, topic, {last}))
    writer.wait_for_acks()
    return writer, everywhere
