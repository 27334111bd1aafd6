"""Brokers of a cluster are killed while clients write: every acknowledged record is there, once and in order."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.real_cluster import RealCluster, running_cluster
from tests.crash.record_load import IDEMPOTENT, TOPIC, Load, assert_stored, create_topic

ACKS_PER_ROUND = 1000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    with running_cluster(tmp_path) as running:
        yield running


def test_every_acknowledged_record_survives_the_kill_of_each_broker(cluster: RealCluster) -> None:
    create_topic(cluster.bootstrap_servers, TOPIC)
    load = Load(cluster.bootstrap_servers, **IDEMPOTENT)
    load.wait_for_more(ACKS_PER_ROUND)
    for node_id in cluster.nodes:
        cluster.kill(node_id)
        load.wait_for_more(ACKS_PER_ROUND)
        cluster.start(node_id)
        load.wait_for_more(ACKS_PER_ROUND)
    assert_stored(cluster.bootstrap_servers, load)
