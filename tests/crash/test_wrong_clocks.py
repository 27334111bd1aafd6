"""One clock an hour ahead and one an hour behind: what was acknowledged does not depend on the time of day.

Leaders and coordinators are killed, so that transactions and groups move between nodes that disagree by two hours. A
coordinator with the later clock aborts transactions that began at another one, as if they had timed out. Their producer
then gets an error, and none of their records may be readable; all records of transactions that were reported as
committed must be.
"""

import time
from pathlib import Path

import pytest

from quire.testing import WireConnection
from tests.crash.committing_member import PROTOCOLS, CommittingMember, Members, assert_no_commit_is_lost
from tests.crash.real_cluster import RealCluster, running_cluster, wait_until
from tests.crash.replicated_cluster import (
    REPLICATED,
    TOPIC,
    address_of,
    create_replicated,
    in_sync,
    leaders_of,
    run_under_load,
    wait_until_in_sync,
)
from tests.crash.replicated_load import ReplicatedLoad
from tests.crash.test_coordinator_moved import GROUP_KEY, coordinator_of
from tests.crash.verdict import missing, read_all
from tests.crash.wrong_clock import wrong_clock
from tests.wire.batches import batch
from tests.wire.raw import produce

HOUR_S = 3600
SHIFTS_S = {1: 0, 2: HOUR_S, 3: -HOUR_S}
"""By node."""
STAMPED, GROUP = "stamped", "group"
INTERNAL = ("__consumer_offsets", "__transaction_state")
COMMITS = 5


def test_no_acknowledged_record_is_lost_with_clocks_that_are_an_hour_off(tmp_path: Path) -> None:
    kill_nodes_with_wrong_clocks(tmp_path, rounds=1)


@pytest.mark.soak
def test_no_acknowledged_record_is_lost_with_clocks_that_are_an_hour_off_for_long(tmp_path: Path) -> None:
    kill_nodes_with_wrong_clocks(tmp_path, rounds=10)


def kill_nodes_with_wrong_clocks(folder: Path, rounds: int) -> None:
    environments = {node_id: wrong_clock(shift_s) for node_id, shift_s in SHIFTS_S.items()}
    with running_cluster(folder, REPLICATED, environments) as cluster:
        bootstrap = cluster.bootstrap_servers
        assert clocks_by_leader(bootstrap) == SHIFTS_S
        create_replicated(bootstrap, TOPIC)
        run_under_load(cluster, lambda load: kill_each(cluster, load, rounds))


def clocks_by_leader(bootstrap: str) -> dict[int, int]:
    """The error of each node's clock in minutes, from the timestamps of its records."""
    create_replicated(bootstrap, STAMPED, len(SHIFTS_S), {"message.timestamp.type": "LogAppendTime"})
    addresses = dict(zip(SHIFTS_S, bootstrap.split(","), strict=True))
    found = {}
    for partition, (leader, _) in in_sync(bootstrap, STAMPED).items():
        with WireConnection(addresses[leader]) as connection:
            response = produce(connection, STAMPED, batch([b"now"]), partition=partition)
        found[leader] = round((response.log_append_time_ms / 1000 - time.time()) / 600) * 600
    return found


def kill_each(cluster: RealCluster, load: ReplicatedLoad, rounds: int) -> None:
    bootstrap = cluster.bootstrap_servers
    with Members(bootstrap, GROUP, TOPIC, PROTOCOLS["consumer"]) as group:
        members = [group.join() for _ in range(2)]
        for number in range(rounds * len(SHIFTS_S)):
            node = 1 + number % len(SHIFTS_S)
            assert number >= len(SHIFTS_S) or node in leaders_of(cluster).values()
            cluster.kill(node)
            load.wait_for_progress()
            wait_for_commits(members)
            assert_no_commit_is_lost(address_of(cluster, coordinator_of(cluster, GROUP, GROUP_KEY)), GROUP, members)
            cluster.start(node)
            for topic in (TOPIC, *INTERNAL):
                wait_until_in_sync(bootstrap, topic)
    stored = read_all(bootstrap, TOPIC)
    received = {(got.partition, got.offset): got.value or b"" for member in members for got in member.received}
    assert len(received) > COMMITS and missing(received, stored) == 0, "the group has read what is not there"


def wait_for_commits(members: list[CommittingMember]) -> None:
    before = sum(each.commits for each in members)
    wait_until(lambda: sum(each.commits for each in members) >= before + COMMITS, "the group commits nothing")
