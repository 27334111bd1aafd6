"""A leader that clients can reach and the other nodes cannot: it acknowledges nothing that the others lack.

In a one-way cut, either what the leader sends to the other nodes is lost, or what they send to it.
"""

import pytest

from quire.protocol.errors import ErrorCode
from quire.testing import Cluster, WireConnection
from tests.crash.proxied_cluster import ONE_WAY, OneWay
from tests.crash.replicated_cluster import (
    TOPIC,
    address_of,
    replicated_cluster,
    run_under_load,
    wait_for_other_leader,
    wait_until_in_sync,
)
from tests.crash.replicated_load import ReplicatedLoad
from tests.crash.verdict import UNCOMMITTED, read_all
from tests.wire.batches import batch
from tests.wire.raw import produce

STRANDED = b"sent to the leader that was isolated"


@pytest.mark.parametrize("one_way", ONE_WAY, ids=["both ways", "is not heard", "does not hear"])
def test_no_acknowledged_record_is_lost_when_a_leader_is_isolated_with_clients(one_way: OneWay) -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: isolate_leader(cluster, load, one_way=one_way))


@pytest.mark.soak
def test_no_acknowledged_record_is_lost_when_leaders_are_isolated_again_and_again() -> None:
    def isolate_leaders(load: ReplicatedLoad) -> None:
        for number in range(20):
            isolate_leader(cluster, load, one_way=ONE_WAY[number % len(ONE_WAY)])

    with replicated_cluster() as cluster:
        run_under_load(cluster, isolate_leaders)


def isolate_leader(cluster: Cluster, load: ReplicatedLoad, *, one_way: OneWay) -> None:
    leader = cluster.leader_of(TOPIC)
    cluster.isolate(leader, from_clients=False, one_way=one_way)
    wait_for_other_leader(cluster, 0, leader)
    with WireConnection(address_of(cluster, leader)) as connection:
        error = produce(connection, TOPIC, batch([STRANDED]), acks=-1, timeout_ms=500).error_code
    assert error != ErrorCode.NONE, "the isolated leader has acknowledged a record that it alone has"
    load.wait_for_progress()
    cluster.heal()
    wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
    assert STRANDED not in read_all(cluster.bootstrap_servers, TOPIC, UNCOMMITTED).values()
