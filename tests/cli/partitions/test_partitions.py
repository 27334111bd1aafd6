"""`quire partitions status` and `elect`, as processes, on three real nodes."""

import json
from collections.abc import Callable, Iterator

import pytest

from quire.testing import Cluster
from tests.cli.command import quire

Report = dict[str, object]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3) as running:
        yield running


def status(cluster: Cluster, *arguments: str) -> Report:
    done = quire("partitions", "status", "--json", *arguments, servers=cluster.bootstrap_servers)
    assert done.returncode == 0, done.stderr
    report: Report = json.loads(done.stdout)
    return report


def until(cluster: Cluster, topic: str, holds: Callable[[Report], bool]) -> Report:
    while not holds(report := status(cluster, "--topic", topic)):
        pass
    return report


def test_a_failover_is_seen_and_undone(cluster: Cluster) -> None:
    topic = cluster.create_topic(partitions=3)
    servers = cluster.bootstrap_servers
    before = until(cluster, topic, lambda report: not report["out_of_sync"])
    assert (before["total"], before["no_leader"], before["not_preferred"]) == (3, 0, 0)

    cluster.kill(3)
    down = until(cluster, topic, lambda report: report["out_of_sync"] == 3 and report["not_preferred"] == 1)
    assert (down["under_min_isr"], down["no_leader"]) == (0, 0)
    shown = quire("partitions", "status", "--topic", topic, "--not-preferred", servers=servers).stdout.decode()
    assert shown.splitlines()[0].split() == ["TOPIC", "PARTITION", "LEADER", "REPLICAS", "ISR", "STATE"]
    assert "not preferred; out of sync: 3; offline: 3" in shown
    assert "\n3 partitions\n  3 with replicas out of sync\n" in shown

    refused = quire("partitions", "elect", "--topic", topic, servers=servers)
    assert refused.returncode == 1
    assert b"broker 3, the first replica, is not up" in refused.stderr

    cluster.restart(3)
    until(cluster, topic, lambda report: not report["out_of_sync"])
    done = quire("partitions", "elect", "--topic", topic, servers=servers)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().endswith(": its first replica leads\n")
    assert status(cluster, "--topic", topic)["not_preferred"] == 0

    again = quire("partitions", "elect", "--topic", topic, servers=servers)
    assert again.stdout == b"nothing to do: 3 partitions have the preferred leader\n"
    assert json.loads(quire("partitions", "elect", "--all", "--json", servers=servers).stdout)["elected"] == []


def test_an_unclean_election_needs_a_yes() -> None:
    with Cluster(nodes=5) as cluster:
        servers = cluster.bootstrap_servers
        made = quire(
            "topics", "create", "odd", "--replica-assignment", "4:5", "-s", "min.insync.replicas=1", servers=servers
        )
        assert made.returncode == 0, made.stderr
        unclean = ("partitions", "elect", "--topic", "odd", "--unclean")
        until(cluster, "odd", lambda report: not report["out_of_sync"])
        assert quire(*unclean, servers=servers).stdout == b"nothing to do: 1 partition has a leader\n"

        cluster.kill(5)
        until(cluster, "odd", lambda report: report["out_of_sync"] == 1)
        cluster.kill(4)
        until(cluster, "odd", lambda report: report["no_leader"] == 1)
        nothing_is_up = quire(*unclean, "--yes", servers=servers)
        assert nothing_is_up.returncode == 1
        assert nothing_is_up.stderr == b"quire: odd-0: no replica is up, of brokers [4, 5]\n"

        cluster.restart(5)
        until(cluster, "odd", lambda report: report["offline"] == 1)
        asked = quire(*unclean, servers=servers)
        assert (asked.returncode, asked.stdout) == (2, b"")
        assert asked.stderr == b"quire: an unclean election may lose acknowledged records: add --yes to allow that.\n"
        elected = json.loads(quire(*unclean, "--yes", "--json", servers=servers).stdout)
        assert elected == {"elected": [{"topic": "odd", "partition": 0}], "refused": [], "not_needed": 0}
        assert status(cluster, "--topic", "odd")["no_leader"] == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), b"give --topic NAME or --all"),
        (("--topic", "led", "--all"), b"give --topic NAME or --all"),
        (("--all", "--partition", "1"), b"--partition needs --topic"),
        (("--topic", "led", "--partition", "7"), b"topic led has no partition 7; it has 2 partitions."),
        (("--topic", "lad"), b"topic lad does not exist; did you mean led?"),
    ],
)
def test_what_cannot_be_elected_is_one_sentence(cluster: Cluster, arguments: tuple[str, ...], sentence: bytes) -> None:
    servers = cluster.bootstrap_servers
    quire("topics", "create", "led", "-p", "2", servers=servers)
    done = quire("partitions", "elect", *arguments, servers=servers)
    assert done.returncode in (2, 4)
    assert done.stdout == b"" and sentence in done.stderr


def test_a_topic_that_does_not_exist_has_no_status(cluster: Cluster) -> None:
    quire("topics", "create", "led", "-p", "2", servers=cluster.bootstrap_servers)
    done = quire("partitions", "status", "--topic", "lead", servers=cluster.bootstrap_servers)
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr == b"quire: topic lead does not exist; did you mean led?\n"
