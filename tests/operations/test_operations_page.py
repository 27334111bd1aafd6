"""docs/operations.md: every command of every section runs on three real nodes, and most of them under load.

The page's scripts run as they are written, see `machines`.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quire.raft.replicas import ReplicaKey
from quire.real.random import RealRandom
from tests.crash.real_cluster import wait_until
from tests.crash.replicated_cluster import REPLICATED, create_replicated, wait_until_in_sync
from tests.crash.replicated_load import PARTITIONS, ReplicatedLoad
from tests.crash.verdict import assert_clean, replicas_differ
from tests.operations.machines import CLUSTER_ID, Machines

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()
NODES = (1, 2, 3)
BEFORE = "before the copy"


def sections() -> dict[str, list[str]]:
    """The scripts of each section, by its title."""
    parts = re.split(r"^#+ (.*)$", PAGE, flags=re.MULTILINE)
    return {
        title: re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
        if "```sh" in text
    }


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Three nodes that serve."""
    found = Machines(tmp_path_factory.mktemp("machines"), REPLICATED)
    random = RealRandom()
    voters = found.voters(ReplicaKey(node, random.uuid()) for node in NODES)
    try:
        for node in NODES:
            found.set_up(node, "broker,controller", NODES)
            options = f"--config /etc/quire/server.properties --cluster-id {CLUSTER_ID} --initial-controllers {voters}"
            found.must(f"ssh host-{node} quire storage format {options}; ssh host-{node} sudo systemctl start quire")
        wait_until_all_are_back(found)
        yield found
        assert "Traceback" not in found.logs()
    except BaseException:
        print(found.logs())
        raise
    finally:
        found.kill(*found.nodes)


def wait_until_all_are_back(machines: Machines) -> None:
    machines.must("for node in 1 2 3; do quire cluster check-restart --node $node --back --wait 90; done")


def run(machines: Machines, title: str) -> list[str]:
    return [machines.must(script) for script in sections()[title]]


@contextmanager
def under_load(machines: Machines, topic: str) -> Iterator[None]:
    """Clients write and read meanwhile; afterwards nothing that was acknowledged is lost or doubled."""
    create_replicated(machines.servers, topic)
    with ReplicatedLoad(machines.servers, topic) as load:
        yield
        load.wait_for_progress()
        wait_until_in_sync(machines.servers, topic)
        assert_clean(load)


def status_is_well(machines: Machines) -> bool:
    return machines.run("quire cluster status").returncode == 0


def has_replicas_on(machines: Machines, topic: str, broker: int) -> bool:
    found = json.loads(machines.must(f"quire partitions status --topic {topic} --json"))
    return any(broker in each["replicas"] for each in found["partitions"])


def test_it_is_looked_at(machines: Machines) -> None:
    run(machines, "Operations")
    (info,) = run(machines, "Ports, files and limits")
    assert CLUSTER_ID in info
    (shown,) = run(machines, "Look at it")
    assert "3 brokers, none fenced" in shown and "metadata.version" in shown


def test_nodes_are_restarted_under_load(machines: Machines) -> None:
    before = {node: machines.pid(node) for node in NODES}
    with under_load(machines, "restarted"):
        (said,) = run(machines, "Restart the nodes")
    assert re.findall(r"node (\d): (may be stopped)|node (\d): (is back)", said)
    assert all(machines.pid(node) not in (None, before[node]) for node in NODES)


def test_nodes_are_upgraded_under_load(machines: Machines) -> None:
    with under_load(machines, "upgraded"):
        upgraded, back = run(machines, "Upgrade")
    assert "metadata.version: is at level 30 (4.3-IV0) already" in upgraded and "could change" in back
    assert (machines.folder / "pip.log").read_text().count("install --upgrade quire-log") == 3


def test_a_broker_is_added_and_decommissioned(machines: Machines) -> None:
    machines.set_up(4, "broker", NODES)
    machines.must("quire topics create crowded --replica-assignment 1:2,1:2,1:2,1:2; echo one | quire produce crowded")
    run(machines, "Add a broker")
    assert has_replicas_on(machines, "crowded", 4)
    machines.must("quire topics create --replication-factor 4 everywhere")
    refused = machines.run("ssh host-4 sudo systemctl stop quire; quire brokers unregister 4")
    assert refused.returncode == 1 and "broker 4 has replicas of" in refused.stderr
    assert "move them with `quire partitions reassign --drain 4`" in refused.stderr
    machines.must("ssh host-4 sudo systemctl start quire; quire topics delete --yes everywhere")
    machines.must("quire cluster check-restart --node 4 --back --wait 90")
    run(machines, "Decommission a broker")
    assert not has_replicas_on(machines, "crowded", 4)
    assert machines.must("quire consume crowded --from-beginning --count 1") == "one\n"
    machines.must("quire topics delete --yes crowded")  # it has no more replicas than it needs, so no node may restart
    assert "4" not in machines.must("quire brokers list --json | grep '\"id\"'")
    assert status_is_well(machines)


def test_a_machine_is_replaced_under_load(machines: Machines) -> None:
    with under_load(machines, "replaced"):
        machines.lose(2)
        run(machines, "Replace a machine")
        assert machines.must("quire quorum describe").count("voter") == 2
    assert status_is_well(machines)
    differ = replicas_differ([machines.data(node) for node in NODES], "replaced", PARTITIONS)
    assert differ == ""


def test_a_controller_whose_loss_would_leave_a_minority_is_not_removed(machines: Machines) -> None:
    machines.kill(3)
    wait_until(lambda: "1 fenced" in machines.run("quire cluster status").stdout, "node 3 is not fenced")
    refused = machines.run("quire quorum remove 2")
    assert refused.returncode == 1 and "1 of 2 voters would be down (3)" in refused.stderr
    machines.must("ssh host-3 sudo systemctl start quire; quire cluster check-restart --node 3 --back --wait 90")
    assert machines.must("quire quorum describe").count("voter") == 2 and status_is_well(machines)


def test_space_is_freed(machines: Machines) -> None:
    machines.must("quire topics create clicks")
    run(machines, "A full disk")
    assert "clicks" not in machines.must("quire topics list")


def test_a_majority_that_is_lost_is_started_again(machines: Machines) -> None:
    machines.must("quire topics create kept; echo one | quire produce kept --acks all")
    machines.kill(2, 3)
    look, again = sections()["The quorum is lost"]
    done = machines.run(look)
    assert done.returncode == 1 and "no active controller answers" in done.stdout
    machines.must(again)
    assert status_is_well(machines)
    assert machines.must("quire consume kept --from-beginning --count 1") == "one\n"


def test_a_copy_is_made_checked_and_restored(machines: Machines) -> None:
    machines.must(f"quire topics create copied -p 3; seq 300 | sed 's/^/{BEFORE} /' | quire produce copied")
    machines.must("quire groups reset-offsets readers --topic copied --to-latest --execute")
    copy, check, restore = sections()["Copy and restore"]
    machines.must(copy)
    machines.must(check)
    machines.must("seq 50 | quire produce copied; quire topics create later")
    machines.must(restore)
    assert status_is_well(machines)
    assert "later" not in machines.must("quire topics list")
    found = machines.must("quire consume copied --from-beginning").splitlines()
    assert sorted(found) == sorted(f"{BEFORE} {number}" for number in range(1, 301))
    assert "copied" in machines.must("quire groups describe readers")
    with under_load(machines, "restored"):
        pass


def test_controllers_move_to_machines_of_their_own_under_load(machines: Machines) -> None:
    """The last one: the other sections are about combined nodes."""
    dedicated = (101, 102, 103)
    for node in dedicated:
        machines.set_up(node, "controller", (*dedicated, *NODES))
    with under_load(machines, "moved"):
        run(machines, "Move the controllers to machines of their own")
    described = machines.must("quire quorum describe --json")
    assert [int(each) for each in re.findall(r'"id": (10\d)', described)] == list(dedicated)
    assert status_is_well(machines)
    last = machines.run("for node in 101 102 103; do quire quorum remove $node; done")
    assert last.returncode == 1 and "is the only voter: add another one first" in last.stderr


def test_every_section_with_commands_has_a_test() -> None:
    tested = set(re.findall(r'(?:run\(machines, |sections\(\)\[)"([^"]+)"', Path(__file__).read_text()))
    assert tested == sections().keys()
