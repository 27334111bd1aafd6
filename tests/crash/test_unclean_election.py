"""min.insync.replicas=1: what the leader alone has is acknowledged, and lost only in an unclean election.

Without that, the partition has no leader until the node returns that has everything. With
`unclean.leader.election.enable` another replica leads at once, and the logs say what is lost. The producer of that test
is not idempotent: an idempotent one would notice that its records are gone, and end. A consumer that has read what is
lost learns of it, although there are other records at its offset by then (KIP-320).
"""

import re
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.crash.dedicated_cluster import DedicatedCluster, dedicated_cluster
from tests.crash.real_cluster import wait_while
from tests.crash.replicated_cluster import TOPIC, create_replicated, not_led_by, wait_until_in_sync
from tests.crash.replicated_load import PARTITIONS, WAIT_S, Writer, client_settings
from tests.crash.verdict import missing, read_all

ALONE = {"min.insync.replicas": "1"}
UNCLEAN = {"unclean.leader.election.enable": "true"}


def test_a_partition_waits_for_the_only_replica_that_has_everything(tmp_path: Path) -> None:
    with dedicated_cluster(tmp_path) as cluster:
        create_replicated(cluster.bootstrap_servers, TOPIC, config=ALONE)
        writer, last = written_by_one(cluster, idempotent=True)
        cluster.kill(last)
        cluster.start(*(each for each in cluster.nodes if each != last))
        wait_while(lambda: not_led_by(cluster.bootstrap_servers, TOPIC, {-1}))
        cluster.start(last)
        wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
        writer.wait_for_acks()
        writer.stop()
        assert missing(writer.acknowledged, read_all(cluster.bootstrap_servers, TOPIC)) == 0
        assert "lost" not in cluster.logs()


def test_an_unclean_election_loses_what_one_replica_alone_had_and_says_so(tmp_path: Path) -> None:
    with dedicated_cluster(tmp_path) as cluster:
        create_replicated(cluster.bootstrap_servers, TOPIC, config=ALONE | UNCLEAN)
        writer, last = written_by_one(cluster, idempotent=False)
        alone = writer.acknowledged.copy()
        reached = read_on(
            cluster, TopicPartition(TOPIC, 0, max(offset for partition, offset in alone if not partition))
        )
        cluster.kill(last)
        others = [each for each in cluster.nodes if each != last]
        cluster.start(*others)
        wait_while(lambda: not_led_by(cluster.bootstrap_servers, TOPIC, set(others)))
        cluster.start(last)
        wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
        writer.wait_for(lambda: (0, reached.offset) in writer.acknowledged, "others have not reached the lost offsets")
        truncated = read_on(cluster, reached)
        writer.stop()
        lost = missing(alone, read_all(cluster.bootstrap_servers, TOPIC))
        print(f"acknowledged {len(writer.acknowledged)}, of these by one replica alone and lost {lost}")
        assert lost > 0
        assert isinstance(truncated, KafkaError)
        assert "truncat" in truncated.str().lower(), "the consumer must not go on behind records that it never saw"
        logs = cluster.logs()
        for partition in range(PARTITIONS):
            assert f"leader elected unclean partition={TOPIC}-{partition} " in logs
            # Which of the records were committed is known here only if that was written down before the kill.
            assert re.search(rf"(replica truncated|committed records lost) partition={TOPIC}-{partition} from=", logs)


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
        return TopicPartition(TOPIC, 0, message.offset() + 1, leader_epoch=message.leader_epoch())
    finally:
        consumer.close()


def written_by_one(cluster: DedicatedCluster, *, idempotent: bool) -> tuple[Writer, int]:
    """A writer, and the node that alone has the last records that it was told are written."""
    settings: dict[str, Any] = {"enable.idempotence": idempotent, "acks": "all"}
    writer = Writer(cluster.bootstrap_servers, TOPIC, **settings)
    writer.start()
    writer.wait_for_acks()
    last, *others = cluster.nodes
    cluster.kill(*others)
    wait_while(lambda: not_led_by(cluster.bootstrap_servers, TOPIC, {last}))
    writer.wait_for_acks()
    return writer, last
