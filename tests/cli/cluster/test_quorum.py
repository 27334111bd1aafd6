"""`quire quorum`, `quire brokers` and `quire cluster status` on three real nodes."""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quire.cli.cluster.quorum import check_others_are_a_majority
from quire.client.admin.quorum import Quorum, QuorumMember
from quire.console.failure import Failure
from quire.testing import Cluster
from tests.cli.command import PATIENCE_S, quire


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3) as running:
        yield running


def as_json(cluster: Cluster, *arguments: str, code: int | None = 0) -> dict[str, object]:
    done = quire(*arguments, "--json", servers=cluster.bootstrap_servers)
    assert code in (done.returncode, None), done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def status(cluster: Cluster) -> str:
    """For people. Any node may answer, and some hear of a change a little later than others."""
    return quire("cluster", "status", servers=cluster.bootstrap_servers).stdout.decode()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"


def ids(members: object) -> list[int]:
    assert isinstance(members, list)
    return [member["id"] for member in members]


def test_the_quorum_is_described(cluster: Cluster) -> None:
    found = as_json(cluster, "quorum", "describe")
    assert set(found) == {"leader_id", "leader_epoch", "high_watermark", "voters", "observers"}
    assert found["leader_id"] == cluster.controller
    assert ids(found["voters"]) == [1, 2, 3] and found["observers"] == []
    text = quire("quorum", "describe", servers=cluster.bootstrap_servers).stdout.decode()
    assert f"leader {cluster.controller} in epoch" in text and text.count("voter") == 2


def test_a_well_cluster_has_a_status_without_complaints(cluster: Cluster) -> None:
    found = as_json(cluster, "cluster", "status")
    assert found["well"] is True and found["leaderless"] == found["out_of_sync"] == []
    text = status(cluster)
    assert "3 brokers, none fenced" in text and "none without a leader" in text
    assert as_json(cluster, "cluster")["controller"] == cluster.controller


def test_brokers_are_listed_and_one_that_serves_stays_registered(cluster: Cluster) -> None:
    done = quire("brokers", "list", "--json", servers=cluster.bootstrap_servers)
    listed = json.loads(done.stdout)
    assert [(each["id"], each["fenced"]) for each in listed] == [(1, False), (2, False), (3, False)]
    refused = quire("brokers", "unregister", "2", servers=cluster.bootstrap_servers)
    assert refused.returncode == 1 and "broker 2 serves clients: stop it first" in refused.stderr.decode()
    unknown = quire("brokers", "unregister", "9", servers=cluster.bootstrap_servers)
    assert unknown.returncode == 4, unknown.stderr


def test_the_effects_of_a_dead_broker_are_shown_and_it_can_be_unregistered(cluster: Cluster) -> None:
    topic = cluster.create_topic(partitions=3, replication_factor=1)
    victim = next(id_ for id_ in cluster.nodes if id_ != cluster.controller)
    partition = next(index for index in range(3) if cluster.leader_of(topic, index) == victim)
    cluster.stop(victim)
    until(lambda: as_json(cluster, "cluster", "status", code=None)["well"] is False)
    until(lambda: f"{topic}-{partition}" in str(as_json(cluster, "cluster", "status", code=1)["leaderless"]))
    until(lambda: "3 brokers, 1 fenced" in (text := status(cluster)) and f"  no leader: {topic}-{partition}" in text)
    refused = quire("brokers", "unregister", str(victim), servers=cluster.bootstrap_servers)
    assert (
        refused.returncode == 1
        and f"{topic}-{partition}): move them with `quire partitions reassign --drain {victim}`"
        in refused.stderr.decode()
    )
    assert f"broker {victim} has replicas of 1 partition" in refused.stderr.decode()
    done = quire("brokers", "unregister", str(victim), "--force", servers=cluster.bootstrap_servers)
    assert done.returncode == 0, done.stderr
    until(lambda: len(json.loads(quire("brokers", "list", "--json", servers=cluster.bootstrap_servers).stdout)) == 2)
    cluster.start(victim)
    until(lambda: as_json(cluster, "cluster", "status", code=None)["well"])


def test_partitions_with_replicas_out_of_sync_are_shown(cluster: Cluster) -> None:
    topic = cluster.create_topic(partitions=1)
    victim = next(id_ for id_ in cluster.nodes if id_ not in (cluster.controller, cluster.leader_of(topic, 0)))
    cluster.stop(victim)
    until(lambda: f"{topic}-0" in str(as_json(cluster, "cluster", "status", code=None)["out_of_sync"]))
    until(lambda: f"  out of sync: {topic}-0" in status(cluster))
    cluster.start(victim)
    until(lambda: as_json(cluster, "cluster", "status", code=None)["well"])


def test_a_voter_is_removed_and_added_again(cluster: Cluster) -> None:
    node = next(id_ for id_ in cluster.nodes if id_ != cluster.controller)
    (member,) = [each for each in json_voters(cluster) if each["id"] == node]
    (listener,) = member["listeners"]
    removed = quire("quorum", "remove", str(node), servers=cluster.bootstrap_servers)
    assert removed.returncode == 0, removed.stderr
    until(lambda: node not in ids(as_json(cluster, "quorum", "describe")["voters"]))
    until(lambda: node in ids(as_json(cluster, "quorum", "describe")["observers"]))
    added = quire("quorum", "add", f"{node}@{listener['host']}:{listener['port']}", servers=cluster.bootstrap_servers)
    assert added.returncode == 0, added.stderr
    until(lambda: ids(as_json(cluster, "quorum", "describe")["voters"]) == [1, 2, 3])


def json_voters(cluster: Cluster) -> list[dict[str, Any]]:
    voters = as_json(cluster, "quorum", "describe")["voters"]
    assert isinstance(voters, list)
    return voters


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["add", "4"], 2, "'4' is not ID@HOST:PORT[:DIRECTORY], such as 4@host-4:9093"),
        (["add", "4@localhost:9093:short"], 2, "is not ID@HOST:PORT[:DIRECTORY]"),
        (["add", "4@localhost:9093"], 1, "node 4 does not follow the metadata log (observers: none): format it with"),
        (["add", "1@localhost:9093"], 1, "node 1 is a voter already; if it has lost its disk, remove its former vote"),
        (["remove", "9"], 1, "node 9 is not a voter of the quorum, which has 1, 2, 3"),
        (["remove", "1", "--directory-id", "x"], 2, "is not a uuid"),
        (
            ["remove", "1", "--directory-id", "JEXY6aqzQY-32P5TStzaFg"],
            1,
            "with directory JEXY6aqzQY-32P5TStzaFg is not",
        ),
    ],
)
def test_a_change_that_is_not_possible_is_refused_with_the_reason(
    cluster: Cluster, arguments: list[str], code: int, why: str
) -> None:
    done = quire("quorum", *arguments, servers=cluster.bootstrap_servers)
    assert done.returncode == code and why in done.stderr.decode(), done.stderr


@pytest.mark.parametrize(
    ("ages_s", "why"),
    [
        ({1: 0, 2: 0, 3: 0}, None),
        ({1: 0, 2: 0, 3: 60}, "without controller 1, 1 of 2 voters would be down (3)"),
        ({1: 60, 2: 0, 3: 0}, None),
        ({1: 0, 2: 0, 3: 0, 4: 60}, None),
        ({1: 0, 2: 0, 3: 60, 4: 60, 5: 0}, "without controller 1, 2 of 4 voters would be down (3, 4)"),
        ({1: 0}, "controller 1 is the only voter: add another one first"),
    ],
)
def test_a_voter_is_not_removed_if_the_quorum_would_have_no_majority(ages_s: dict[int, int], why: str | None) -> None:
    now_ms = 1_000_000
    voters = [
        QuorumMember(id_, bytes(16), 7, 0, now_ms - 1000 * age_s, now_ms - 1000 * age_s, [])
        for id_, age_s in ages_s.items()
    ]
    found = Quorum(leader_id=2, leader_epoch=1, high_watermark=7, voters=voters, observers=[])
    if why is None:
        check_others_are_a_majority(found, voters[0])
    else:
        with pytest.raises(Failure, match=re.escape(why)):
            check_others_are_a_majority(found, voters[0])


def test_without_an_active_controller_the_status_says_so(cluster: Cluster) -> None:
    killed = [id_ for id_ in cluster.nodes if id_ != cluster.controller]
    for node in killed:
        cluster.kill(node)
    left = next(iter(cluster.pids))
    one = cluster.bootstrap_servers.split(",")[left - 1]
    until(lambda: b"no active controller" in quire("cluster", "status", servers=one).stdout)
    assert b"quorum: no active controller" in quire("cluster", servers=one).stdout
    refused = quire("quorum", "describe", "--timeout", "2", servers=one)
    assert refused.returncode == 3 and b"there is no active controller: start the controllers" in refused.stderr
    for node in killed:
        cluster.restart(node, wait=False)
    until(lambda: quire("cluster", "status", servers=one).returncode == 0)
