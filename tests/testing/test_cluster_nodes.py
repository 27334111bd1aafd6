"""`Cluster(nodes=3)`: several real nodes behind proxies, with faults on request."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from confluent_kafka import Producer

from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.testing import Cluster, ClusterError, UnusedFaultError, WireConnection, records
from tests.wire.batches import batch
from tests.wire.raw import list_offset, produce, topic_metadata

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3, config={"num.partitions": 3}) as running:
        yield running


@pytest.fixture(autouse=True)
def whole(cluster: Cluster) -> Iterator[None]:
    """Every test restores the shared cluster."""
    yield
    cluster.clear_faults()
    cluster.start()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def brokers_at(address: str) -> list[int]:
    with WireConnection(address, timeout_s=PATIENCE_S) as connection:
        return sorted(
            broker.node_id for broker in connection.call(MetadataRequest(topics=[]), 12, MetadataResponse).brokers
        )


def address(cluster: Cluster, node: int) -> str:
    return cluster.bootstrap_servers.split(",")[node - 1]


def live(cluster: Cluster, asked: int) -> list[int]:
    """The brokers that a node names; asked without its proxies."""
    return brokers_at(cluster._nodes.direct_address(asked))


def test_all_nodes_serve_and_lead(cluster: Cluster) -> None:
    assert cluster.nodes == [1, 2, 3] and sorted(cluster.pids) == [1, 2, 3]
    assert cluster.controller in cluster.nodes
    for each in cluster.bootstrap_servers.split(","):
        assert brokers_at(each) == [1, 2, 3]
    topic = cluster.create_topic()
    assert sorted(cluster.leader_of(topic, partition) for partition in range(3)) == [1, 2, 3]
    cluster.produce(topic, "a", "b", "c")
    assert [record.value for record in cluster.read_all(topic)] == [b"a", b"b", b"c"]


def test_clients_get_only_the_addresses_of_the_proxies(cluster: Cluster) -> None:
    with WireConnection(cluster.bootstrap_servers) as connection:
        answer = connection.call(MetadataRequest(topics=[]), 12, MetadataResponse)
    assert ",".join(f"{each.host}:{each.port}" for each in answer.brokers) == cluster.bootstrap_servers


def test_another_controller_takes_over_when_the_active_one_is_killed(cluster: Cluster) -> None:
    before = cluster.controller
    cluster.kill(before)
    assert before not in cluster.pids
    with pytest.raises(ConnectionRefusedError):
        WireConnection(address(cluster, before))
    assert cluster.controller != before
    cluster.restart(before)
    assert brokers_at(address(cluster, before)) == [1, 2, 3]


def test_a_node_is_stopped_and_started_like_an_operator_would(cluster: Cluster) -> None:
    node = next(each for each in cluster.nodes if each != cluster.controller)
    other = next(each for each in cluster.nodes if each != node)
    cluster.stop(node)
    until(lambda: node not in live(cluster, other))
    assert (cluster.data_dir / f"node-{node}" / ".kafka_cleanshutdown").exists()
    cluster.start(node)
    until(lambda: live(cluster, other) == [1, 2, 3])


def test_nodes_that_all_stop_do_not_wait_for_a_controller(cluster: Cluster) -> None:
    for _ in range(3):
        logged = cluster.log_size
        cluster.restart()
        assert "controlled shutdown" not in cluster.log(logged)
    one, *others = cluster.nodes
    for node in others:
        cluster.kill(node)
    logged = cluster.log_size
    cluster.stop(one)
    assert "controlled shutdown" not in cluster.log(logged), "the others are down already"


def test_records_survive_that_all_nodes_are_killed_at_once(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, "a", "b", "c")
    cluster.kill()
    assert cluster.pids == {}
    with pytest.raises(ClusterError, match="does not run"):
        _ = cluster.controller
    cluster.restart()
    assert [record.value for record in cluster.read_all(topic)] == [b"a", b"b", b"c"]


def test_without_a_majority_of_the_controllers_none_is_active(cluster: Cluster) -> None:
    for node in cluster.nodes[1:]:
        cluster.kill(node)
    with pytest.raises(ClusterError, match="there was no active controller within 1 s"):
        records.controller(cluster._nodes.serving_directly(), timeout_s=1.0)


def test_a_paused_controller_is_replaced_and_follows_after_resuming(cluster: Cluster) -> None:
    before = cluster.controller
    cluster.pause(before)
    assert cluster.controller != before
    cluster.resume(before)
    until(lambda: live(cluster, before) == [1, 2, 3])


def test_an_isolated_controller_is_replaced_and_follows_when_the_network_heals(cluster: Cluster) -> None:
    before = cluster.controller
    cluster.isolate(before)
    until(lambda: cluster.controller != before)
    with WireConnection(address(cluster, before), timeout_s=0.2) as connection, pytest.raises(TimeoutError):
        connection.call(MetadataRequest(topics=[]), 12, MetadataResponse)
    cluster.heal()
    until(lambda: live(cluster, before) == [1, 2, 3])
    assert brokers_at(address(cluster, before)) == [1, 2, 3]


def test_a_node_can_be_isolated_from_clients_alone(cluster: Cluster) -> None:
    node = next(each for each in cluster.nodes if each != cluster.controller)
    cluster.isolate(node, from_nodes=False)
    with WireConnection(address(cluster, node), timeout_s=0.2) as connection, pytest.raises(TimeoutError):
        connection.call(MetadataRequest(topics=[]), 12, MetadataResponse)
    assert live(cluster, node) == [1, 2, 3]


@pytest.mark.parametrize(("one_way", "arrived"), [("sent", 1), ("received", 0)])
def test_one_way_a_request_or_only_its_response_is_lost(
    cluster: Cluster, one_way: Literal["sent", "received"], arrived: int
) -> None:
    topic = cluster.create_topic(partitions=1, replication_factor=1)
    leader = cluster.leader_of(topic)
    with (
        WireConnection(address(cluster, leader)) as connection,
        WireConnection(cluster._nodes.direct_address(leader)) as direct,
    ):
        topic_metadata(connection, topic)  # the connection is established
        until(lambda: list_offset(direct, topic, -1).offset == 0)  # the leader knows that it leads
        connection.socket.settimeout(0.2)
        cluster.isolate(leader, from_nodes=False, one_way=one_way)
        with pytest.raises(TimeoutError):
            produce(connection, topic, batch([b"one"]))
        until(lambda: list_offset(direct, topic, -1).offset == arrived)


def test_a_client_finds_the_partitions_of_the_nodes_that_are_left(cluster: Cluster) -> None:
    topic = cluster.create_topic(replication_factor=1)
    victim = cluster.leader_of(topic, 0)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    cluster.kill(victim)
    left = [partition for partition in range(3) if cluster.leader_of(topic, partition) not in (victim, -1)]
    assert len(left) == 2
    for partition in left:
        producer.produce(topic, "there", partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    cluster.restart(victim)
    until(lambda: cluster.leader_of(topic, 0) == victim)
    producer.produce(topic, "again", partition=0)
    assert producer.flush(PATIENCE_S) == 0


def test_another_node_leads_the_partitions_of_a_node_that_is_killed(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, "before", "it", "fails")
    victim = cluster.leader_of(topic, 0)
    cluster.kill(victim)
    until(lambda: cluster.leader_of(topic, 0) not in (victim, -1))
    cluster.produce(topic, "after", "it", "failed")
    assert len(cluster.read_all(topic)) == 6
    cluster.restart(victim)


def test_faults_apply_to_all_nodes_or_to_one(cluster: Cluster) -> None:
    cluster.delay("Metadata", 100)
    began = time.monotonic()
    brokers_at(address(cluster, 2))
    assert time.monotonic() - began >= 0.1
    cluster.check_faults()
    cluster.fail_next("Metadata", "NOT_CONTROLLER", node=3)
    brokers_at(address(cluster, 1))
    with pytest.raises(UnusedFaultError):
        cluster.check_faults()


def test_the_log_names_the_nodes(cluster: Cluster) -> None:
    log = cluster.log()
    assert all(f"node-{id_} | " in log for id_ in cluster.nodes)
    assert cluster.log(cluster.log_size) == ""


def test_errors_name_the_missing_node_or_the_wrong_setting(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="there is no node 4, only 1, 2, 3"):
        cluster.kill(4)
    with pytest.raises(ClusterError, match=r"config has node\.id"):
        Cluster(nodes=3, config={"node.id": 4}).start()
    with pytest.raises(ClusterError, match=r"no\.such\.setting"):
        Cluster(nodes=3, config={"no.such.setting": 4}).start()
    with pytest.raises(ClusterError, match=r"offsets\.topic\.replication\.factor=4 cannot be reached with 3 nodes"):
        Cluster(nodes=3, config={"offsets.topic.replication.factor": 4}).start()
    with pytest.raises(ValueError, match="a number of nodes of at least 1, not 0"):
        Cluster(nodes=0)
    with pytest.raises(ValueError, match='one_way is True, False, "sent" or "received", not \'send\''):
        cluster.isolate(1, one_way="send")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="node 1 cannot be isolated from itself"):
        cluster.isolate(1, from_nodes=[1, 2])
    with pytest.raises(ValueError, match="nothing would be isolated"):
        cluster.isolate(1, from_nodes=False, from_clients=False)


def test_two_nodes_have_one_controller() -> None:
    with Cluster(nodes=2) as two:
        assert two.controller == 1
        assert brokers_at(address(two, 2)) == [1, 2]


TEST_PROCESS = """
    import time
    from quire.testing import Cluster
    cluster = Cluster(nodes=2)
    cluster.start()
    print(*cluster.pids.values(), cluster._nodes.layout.network._process.pid, flush=True)
    time.sleep(60)
"""


def test_nothing_outlives_a_test_process_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(TEST_PROCESS)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 3
        os.kill(process.pid, signal.SIGKILL)
    for pid in pids:
        until(lambda pid=pid: not Path(f"/proc/{pid}").exists())  # type: ignore[misc]
    until(lambda: not list(tmp_path.iterdir()))
