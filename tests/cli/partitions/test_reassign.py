"""`quire partitions reassign` and `quire cluster balance`, as processes, on four real nodes."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quire.cli.partitions.throttle import RATES, REPLICAS
from quire.client.admin.configs import ConfigSource, Resource, ResourceType, describe_configs
from quire.client.admin.reassignments import reassign_partitions
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.testing import Cluster
from tests.cli.command import PATIENCE_S, QUIRE, environment, killed_at_the_end, quire

Done = subprocess.CompletedProcess[bytes]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=4) as running:
        yield running


def reassign(cluster: Cluster, *arguments: str, code: int = 0) -> Done:
    done = quire("partitions", "reassign", *arguments, servers=cluster.bootstrap_servers)
    assert done.returncode == code, done.stderr
    return done


def replicas(cluster: Cluster, topic: str) -> list[list[int]]:
    done = quire("partitions", "status", "--topic", topic, "--json", servers=cluster.bootstrap_servers)
    return [each["replicas"] for each in json.loads(done.stdout)["partitions"]]


def fill(cluster: Cluster, topic: str, assignment: str, records: int = 300) -> None:
    servers = cluster.bootstrap_servers
    made = quire("topics", "create", topic, "--replica-assignment", assignment, servers=servers)
    assert made.returncode == 0, made.stderr
    written = quire("produce", topic, servers=servers, stdin=b"\n".join(b"%d" % each for each in range(records)))
    assert written.returncode == 0, written.stderr


def read(cluster: Cluster, topic: str) -> list[int]:
    done = quire("consume", topic, "--from-beginning", servers=cluster.bootstrap_servers)
    return sorted(map(int, done.stdout.split()))


def test_a_broker_is_drained_and_no_record_is_lost(cluster: Cluster) -> None:
    fill(cluster, "drained", "4:1,1:4,2:3")
    shown = reassign(cluster, "--topics", "drained", "--drain", "4", "--dry-run").stdout.decode()
    assert shown.splitlines()[0].split() == ["PARTITION", "FROM", "TO", "COPIED"]
    assert "2 partitions: 2 replicas copied" in shown
    assert replicas(cluster, "drained") == [[4, 1], [1, 4], [2, 3]], "a dry run moves nothing"
    done = reassign(cluster, "--topics", "drained", "--drain", "4")
    assert "done: 2 partitions changed" in done.stdout.decode()
    assert b"100%, 2 of 2 partitions done" in done.stderr
    assert not any(4 in each for each in replicas(cluster, "drained"))
    assert replicas(cluster, "drained")[2] == [2, 3]
    assert read(cluster, "drained") == list(range(300))
    again = reassign(cluster, "--topics", "drained", "--drain", "4")
    assert again.stdout == b"nothing to move: the partitions are as they should be\n"


def test_a_plan_that_was_printed_is_carried_out(cluster: Cluster, tmp_path: Path) -> None:
    fill(cluster, "planned", "1:2,2:1")
    printed = reassign(cluster, "--topics", "planned", "--brokers", "3,4", "--dry-run", "--json").stdout
    plan = tmp_path / "plan.json"
    plan.write_bytes(printed)
    report = json.loads(reassign(cluster, "--plan", str(plan), "--json").stdout)
    assert (report["partitions"], report["copied_replicas"], report["done"]) == (2, 4, True)
    assert sorted(map(sorted, replicas(cluster, "planned"))) == [[3, 4], [3, 4]]
    assert sorted(each[0] for each in replicas(cluster, "planned")) == [3, 4]
    assert read(cluster, "planned") == list(range(300))


def test_partitions_get_more_and_fewer_replicas(cluster: Cluster) -> None:
    fill(cluster, "factor", "1,2")
    reassign(cluster, "--topics", "factor", "--replication-factor", "3")
    assert [len(set(each)) for each in replicas(cluster, "factor")] == [3, 3]
    reassign(cluster, "--topics", "factor", "--replication-factor", "2")
    assert [len(set(each)) for each in replicas(cluster, "factor")] == [2, 2]
    assert [each[0] for each in replicas(cluster, "factor")] == [1, 2], "the leaders stay"


def test_a_throttle_limits_the_copies_and_is_gone_at_the_end(cluster: Cluster) -> None:
    servers = cluster.bootstrap_servers
    fill(cluster, "slow", "1", records=1)
    lines = b"\n".join(b"%d" % each + b"x" * 10_000 for each in range(300))
    assert quire("produce", "slow", servers=servers, stdin=lines).returncode == 0
    began_s = time.monotonic()
    reassign(cluster, "--topics", "slow", "--brokers", "2", "--throttle", "500000")
    assert time.monotonic() - began_s > 4.5, "3 MB, of which the first half may come at once"
    assert replicas(cluster, "slow") == [[2]]
    with BlockingClient(servers) as client:
        left = client.run(describe_configs(client.cluster, Resource(ResourceType.TOPIC, "slow"), REPLICAS))
        left += client.run(describe_configs(client.cluster, Resource(ResourceType.BROKER, "1"), RATES))
    assert [each.source for each in left] == [ConfigSource.DEFAULT] * 4


def test_what_is_in_progress_is_listed_watched_and_cancelled(cluster: Cluster) -> None:
    fill(cluster, "stuck", "1:2")
    cluster.kill(4)
    try:
        check_stuck(cluster)
    finally:
        cluster.restart(4)
        while json.loads(quire("brokers", "list", "--json", servers=cluster.bootstrap_servers).stdout)[3]["fenced"]:
            pass


def check_stuck(cluster: Cluster) -> None:
    """A replica is added on broker 4, which is down."""
    with BlockingClient(cluster.bootstrap_servers) as client:
        results = client.run(reassign_partitions(client.cluster, {TopicPartition("stuck", 0): [1, 4]}))
    assert set(results.values()) == {None}
    (listed,) = json.loads(reassign(cluster, "--list", "--json").stdout)
    assert (listed["topic"], listed["adding"], listed["removing"], listed["copied"]) == ("stuck", [4], [2], 0.0)
    assert b"stuck-0" in reassign(cluster, "--list").stdout
    busy = reassign(cluster, "--topics", "stuck", "--brokers", "2,3", "--yes", code=1)
    assert busy.stderr.startswith(b"quire: stuck-0 is being reassigned already: ")

    watching = [*QUIRE, "partitions", "reassign", "--watch", "--json", "-b", cluster.bootstrap_servers]
    process = subprocess.Popen(watching, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    with killed_at_the_end(process):
        assert process.stdout is not None
        assert b"0 of 1 partition done" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert b"the reassignment goes on in the cluster. Watch it with `quire partitions reassign --watch`" in error

    assert reassign(cluster, "--cancel").stdout == b"1 partition: cancelled\n"
    assert replicas(cluster, "stuck") == [[1, 2]]
    assert reassign(cluster, "--list").stdout == b"no reassignment is in progress\n"
    assert reassign(cluster, "--watch").stdout == b"no reassignment is in progress\n"
    assert b"no reassignment is in progress: what is done stays done" in reassign(cluster, "--cancel", code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "say what moves: --drain ID,"),
        (("--drain", "3", "--brokers", "1"), 2, "give either --brokers, --topics and"),
        (("--list", "--drain", "3"), 2, "--list, --watch and --cancel are about what is in progress"),
        (("--brokers", "1,x"), 2, "'1,x' is not a list of broker ids such as 1,2,3"),
        (("--topics", "a,,b"), 2, "'a,,b' is not a list of names such as orders,audit"),
        (("--drain", "9"), 4, "there is no broker 9; the brokers are 1, 2, 3, 4."),
        (("--brokers", "1,9"), 1, "broker 9 is not up, or does not exist; brokers that are up: 1, 2, 3, 4."),
        (("--topics", "lone", "--replication-factor", "5"), 1, "lone-0 needs 5 replicas, and only these brokers"),
        (("--topics", "lonely", "--brokers", "2"), 4, "topic lonely does not exist; did you mean lone?"),
        (("--topics", "lone", "--brokers", "2", "--throttle", "0"), 2, "'0' is not a whole number of at least 1"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    cluster: Cluster, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    quire("topics", "create", "lone", "--replica-assignment", "1", servers=cluster.bootstrap_servers)
    done = reassign(cluster, *arguments, code=code)
    assert done.stdout == b"" and sentence in done.stderr.decode()
    assert replicas(cluster, "lone") == [[1]], "nothing has moved"


def test_a_plan_for_what_does_not_exist_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"version": 1, "partitions": [{"topic": "gone", "partition": 0, "replicas": [1]}]}')
    refused = reassign(cluster, "--plan", str(plan), code=1)
    assert refused.stderr == b"quire: there is no topic gone: it may have been deleted since the plan was made.\n"
    plan.write_text("gone")
    assert b"the plan is not JSON" in reassign(cluster, "--plan", str(plan), code=1).stderr


def test_the_cluster_is_balanced_in_two_parts(cluster: Cluster) -> None:
    servers = cluster.bootstrap_servers
    fill(cluster, "crowded", ",".join(["1:2"] * 8))
    first = quire("cluster", "balance", "--max-moves", "2", "--json", servers=servers)
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["copied_replicas"] == 2
    assert quire("cluster", "balance", "--yes", servers=servers).returncode == 0
    plan = json.loads(quire("cluster", "balance", "--dry-run", "--json", servers=servers).stdout)
    assert plan["partitions"] == []
    counts = [each["now"]["replicas"] for each in plan["brokers"]]
    assert len(counts) == 4 and max(counts) - min(counts) <= 1
    assert read(cluster, "crowded") == list(range(300))
    balanced = quire("cluster", "balance", servers=servers)
    assert b"nothing to move: the cluster is balanced" in balanced.stdout
