"""`quire explain`, as a process, against real nodes. The sentences are in test_topic_promises.py."""

import json
import re

from quire.testing import Cluster
from tests.cli.command import quire


def test_a_topic_of_a_single_node(servers: str) -> None:
    quire("topics", "create", "single", "-p", "2", "-s", "flush.messages=1", servers=servers)
    done = quire("explain", "single", servers=servers)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "topic single: 2 partitions with 1 replica each, min.insync.replicas=1"
    assert [line for line in lines if line.isupper()] == ["PROMISED", "NOW", "TO CHANGE"]
    assert "- All partitions have a leader." in lines
    assert max(map(len, lines)) <= 100


def test_a_topic_that_does_not_exist_is_one_sentence_with_the_nearest_name(servers: str) -> None:
    quire("topics", "create", "payments", servers=servers)
    done = quire("explain", "paymants", servers=servers)
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr == b"quire: topic paymants does not exist; did you mean payments?\n"


def test_without_a_broker_it_is_one_sentence() -> None:
    done = quire("explain", "orders", "-b", "127.0.0.1:1", "--timeout", "1")
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.count(b"\n") == 1


def test_three_nodes_and_one_that_is_killed() -> None:
    with Cluster(nodes=3, start_timeout_s=60) as cluster:
        topic = cluster.create_topic(partitions=4)
        servers = cluster.bootstrap_servers

        facts = json.loads(quire("explain", topic, "--json", servers=servers).stdout)
        assert (facts["partitions"], facts["replication_factor"], facts["required_in_sync"]) == (4, 3, 2)
        assert facts["eligible_leader_replicas"] is True
        assert facts["survives"] == {
            "failures_for_writes": 1,
            "failures_for_leaders": 1,  # the nodes are the controllers, and most of them must be up
            "racks_for_writes": [],
            "racks_for_leaders": [],
        }
        assert "All replicas are in sync." in facts["now"]

        killed = cluster.leader_of(topic, 0)
        cluster.kill(killed)
        facts = {}
        while not facts or facts["brokers_down"] != [killed] or facts["leaderless"] or facts["refusing_acks_all"]:
            done = quire("explain", topic, "--json", servers=servers)
            facts = {} if done.returncode else json.loads(done.stdout)
        assert facts["survives"]["failures_for_writes"] == 0
        assert re.search(rf"Start broker {killed}, ", "\n".join(facts["changes"]))
