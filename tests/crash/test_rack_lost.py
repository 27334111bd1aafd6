"""Five brokers in three racks of different sizes: each partition has a replica in each, and one rack may fail."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from quire.raft.replicas import ReplicaKey
from quire.real.random import RealRandom
from tests.crash.real_cluster import wait_while
from tests.crash.replicated_cluster import REPLICATED, create_replicated, in_sync, wait_until_in_sync
from tests.crash.replicated_load import ReplicatedLoad
from tests.crash.verdict import assert_clean
from tests.operations.machines import CLUSTER_ID, Machines

RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
VOTERS = (1, 3, 5)
TOPIC = "spread"


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """A controller in each rack, and all brokers serve."""
    found = Machines(tmp_path / "machines", REPLICATED)
    random = RealRandom()
    voters = found.voters(ReplicaKey(node, random.uuid()) for node in VOTERS)
    try:
        for node, rack in RACKS.items():
            found.set_up(node, "broker,controller" if node in VOTERS else "broker", VOTERS, {"broker.rack": rack})
            first = f"--initial-controllers {voters}" if node in VOTERS else "--no-initial-controllers"
            options = f"--config /etc/quire/server.properties --cluster-id {CLUSTER_ID} {first}"
            found.must(f"ssh host-{node} quire storage format {options}; ssh host-{node} sudo systemctl start quire")
        wait_until_back(found, *RACKS)
        yield found
        assert "Traceback" not in found.logs()
    except BaseException:
        print(found.logs())
        raise
    finally:
        found.kill(*RACKS)


def wait_until_back(machines: Machines, *nodes: int) -> None:
    machines.must("\n".join(f"quire cluster check-restart --node {node} --back --wait 90" for node in nodes))


def racks_of(nodes: set[int]) -> list[str]:
    return sorted(RACKS[node] for node in nodes)


def test_a_rack_that_fails_takes_nothing_offline(machines: Machines) -> None:
    servers = machines.here(",".join(f"host-{node}:9092" for node in RACKS))
    create_replicated(servers, TOPIC)
    placed = {partition: isr for partition, (_, isr) in in_sync(servers, TOPIC).items()}
    assert all(racks_of(isr) == ["a", "b", "c"] for isr in placed.values())
    state = machines.must(f"quire explain {TOPIC} --json")
    assert json.loads(state)["survives"]["racks_for_writes"] == ["a", "b", "c"]

    with ReplicatedLoad(servers, TOPIC) as load:
        machines.kill(1, 2)

        def wrong() -> str:
            found = in_sync(servers, TOPIC)
            return "" if all(racks_of(isr) == ["b", "c"] for _, isr in found.values()) else f"the ISR are {found}"

        wait_while(wrong)
        load.wait_for_progress()

        # New topics use the racks that are left; where these have too few brokers, a rack has two replicas.
        machines.must("quire topics create meanwhile -p 3 --replication-factor 3")
        (described,) = json.loads(machines.must("quire topics describe meanwhile --json"))
        assert all(racks_of({*each["replicas"]}) == ["b", "b", "c"] for each in described["partitions"])
        refused = machines.run("quire cluster check-restart --node 5")
        assert refused.returncode == 1 and "which is no majority" in refused.stderr

        machines.must("ssh host-1 sudo systemctl start quire; ssh host-2 sudo systemctl start quire")
        wait_until_back(machines, 1, 2)
        load.wait_for_progress()
        wait_until_in_sync(servers, TOPIC)
        assert {partition: isr for partition, (_, isr) in in_sync(servers, TOPIC).items()} == placed
        assert_clean(load)
