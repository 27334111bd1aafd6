"""A leader that is paused and continues later: it must not act as the leader any more.

Its clients wait until the broker's session ends. Another leader then takes over, and what the old one has in its log
beyond that is truncated.
"""

import time

import pytest

from quire.testing import Cluster
from tests.crash.replicated_cluster import TOPIC, replicated_cluster, run_under_load, wait_for_other_leader
from tests.crash.replicated_load import ReplicatedLoad

LONG_S = 30.0


def test_no_acknowledged_record_is_lost_when_a_leader_is_paused_until_another_one_leads() -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: pause_leader(cluster, load))


@pytest.mark.soak
@pytest.mark.parametrize("seconds", [1.0, LONG_S])
def test_no_acknowledged_record_is_lost_when_leaders_are_paused_for_long(seconds: float) -> None:
    """Also for less than a session, after which the same node continues to lead."""

    def pause_leaders(load: ReplicatedLoad) -> None:
        for _ in range(3):
            leader = cluster.leader_of(TOPIC)
            cluster.pause(leader)
            time.sleep(seconds)  # the length of the pause is what is tested
            cluster.resume(leader)
            load.wait_for_progress()

    with replicated_cluster(**{"broker.session.timeout.ms": 9000, "broker.heartbeat.interval.ms": 2000}) as cluster:
        run_under_load(cluster, pause_leaders)


def pause_leader(cluster: Cluster, load: ReplicatedLoad) -> None:
    leader = cluster.leader_of(TOPIC)
    cluster.pause(leader)
    wait_for_other_leader(cluster, 0, leader)
    load.wait_for_progress()
    cluster.resume(leader)
