"""Apache Kafka's command line tools against three Quire nodes, and on the metadata log that they leave."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.apache_kafka import ApacheKafka
from interop.dump_log_segments import dump_folder
from interop.mixed_cluster import CLUSTER_ID, MixedCluster, MixedNode, NodePlan, mixed_cluster, soon
from quire.client.admin.reassignments import reassign_partitions
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient

NODES = (1, 2, 3)
JOINS = 4
SETTINGS = {"metadata.log.max.record.bytes.between.snapshots": "8000"}
RECORDS = 300


@pytest.fixture(scope="module")
def cluster(kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    plans = [NodePlan(id_, "quire") for id_ in NODES]
    planned = MixedCluster(
        kafka, tmp_path_factory.mktemp("quire"), plans, SETTINGS, later=[NodePlan(JOINS, "quire", "controller")]
    )
    with mixed_cluster(planned) as running:
        yield running


def at(node: MixedNode) -> tuple[str, str]:
    return "--bootstrap-server", node.address


def replication(kafka: ApacheKafka, node: MixedNode) -> dict[int, str]:
    """Node -> its role in the quorum."""
    lines = kafka.tool("MetadataQuorumCommand", *at(node), "describe", "--replication").splitlines()
    columns = [line.split() for line in lines[1:] if line]
    return {int(column[0]): column[-1] for column in columns}


def test_topics_are_spread_over_the_nodes(kafka: ApacheKafka, cluster: MixedCluster) -> None:
    first, second, third = (cluster.nodes[id_] for id_ in NODES)
    kafka.tool("TopicCommand", *at(first), "--create", "--topic", "made", "--partitions", "6")
    described = kafka.tool("TopicCommand", *at(second), "--describe", "--topic", "made")
    assert sorted(map(int, re.findall(r"Leader: (\d+)", described))) == [1, 1, 2, 2, 3, 3]
    kafka.tool("TopicCommand", *at(third), "--alter", "--topic", "made", "--partitions", "9")
    assert "PartitionCount: 9" in kafka.tool("TopicCommand", *at(first), "--describe", "--topic", "made")
    kafka.tool("TopicCommand", *at(second), "--delete", "--topic", "made")
    assert "made" not in kafka.tool("TopicCommand", *at(third), "--list").split()


def test_a_group_reads_what_the_console_producer_wrote(kafka: ApacheKafka, cluster: MixedCluster) -> None:
    first, second, third = (cluster.nodes[id_] for id_ in NODES)
    kafka.tool("TopicCommand", *at(first), "--create", "--topic", "lines", "--partitions", "6")
    written = [f"k{number}=line {number}" for number in range(RECORDS)]
    key = ("--reader-property", "parse.key=true", "--reader-property", "key.separator==")
    kafka.tool("ConsoleProducer", *at(second), "--topic", "lines", *key, text="\n".join(written) + "\n")
    for protocol in ("classic", "consumer"):
        group = ("--group", f"readers-{protocol}", "--command-property", f"group.protocol={protocol}")
        read = kafka.tool(
            "consumer.ConsoleConsumer", *at(third), "--topic", "lines", *group, "--from-beginning",
            "--max-messages", str(RECORDS), "--timeout-ms", "30000",
        )  # fmt: skip
        assert sorted(read.splitlines()) == sorted(line.partition("=")[2] for line in written)
        named = ("--describe", "--group", f"readers-{protocol}")
        rows = kafka.tool("consumer.group.ConsumerGroupCommand", *at(first), *named).splitlines()
        lags = [row.split()[5] for row in rows if row.startswith("readers-")]
        assert lags == ["0"] * 6


def test_replicas_move_and_a_move_is_cancelled(kafka: ApacheKafka, cluster: MixedCluster, tmp_path: Path) -> None:
    first, second, third = (cluster.nodes[id_] for id_ in NODES)
    assigned = ("--create", "--topic", "moved", "--replica-assignment", "1:2,2:3,3:1")
    kafka.tool("TopicCommand", *at(first), *assigned)
    lines = [f"line {number}" for number in range(RECORDS)]
    kafka.tool("ConsoleProducer", *at(second), "--topic", "moved", text="\n".join(lines) + "\n")

    def plan(*replicas: list[int]) -> tuple[str, str]:
        path = tmp_path / "plan.json"
        partitions = [
            {"topic": "moved", "partition": index, "replicas": each, "log_dirs": ["any"] * len(each)}
            for index, each in enumerate(replicas)
        ]
        path.write_text(json.dumps({"version": 1, "partitions": partitions}))
        return "--reassignment-json-file", str(path)

    def reassign(node: MixedNode, *words: str, fails: bool = False) -> str:
        return kafka.tool("reassign.ReassignPartitionsCommand", *at(node), *words, fails=fails)

    topics = tmp_path / "topics.json"
    topics.write_text('{"version": 1, "topics": [{"topic": "moved"}]}')
    generate = ("--topics-to-move-json-file", str(topics), "--broker-list", "1,2", "--generate")
    assert '"partition":2' in reassign(third, *generate)

    # Other replicas, another order, and one more replica.
    wanted = plan([3, 2], [3, 2], [3, 1, 2])
    assert "Successfully started partition reassignments" in reassign(first, *wanted, "--execute")
    soon(lambda: "No partition reassignments found" in reassign(second, "--list"))
    verified = reassign(third, *wanted, "--verify")
    assert all(f"Reassignment of partition moved-{index} is completed" in verified for index in range(3))
    described = kafka.tool("TopicCommand", *at(first), "--describe", "--topic", "moved")
    assert re.findall(r"Replicas: (\S+)", described) == ["3,2", "3,2", "3,1,2"]
    assert [sorted(each.split(",")) for each in re.findall(r"Isr: (\S+)", described)] == [
        ["2", "3"],
        ["2", "3"],
        ["1", "2", "3"],
    ]

    assert "nknown broker" in reassign(second, *plan([3, 9]), "--execute", fails=True)

    # While its broker is down, a replica cannot be added. Apache Kafka's command would refuse that.
    first.stop()
    wanted = plan([1, 2])
    with BlockingClient(second.address) as client:
        moves = reassign_partitions(client.cluster, {TopicPartition("moved", 0): [1, 2]})
        assert client.run(moves) == {TopicPartition("moved", 0): None}
    listed = reassign(third, "--list")
    assert re.search(r"moved-0: replicas: 1,2,3. adding: 1. removing: 3.", listed), listed
    assert "still in progress" in reassign(second, *wanted, "--verify")
    cancel = (*wanted, "--cancel", "--preserve-throttles")
    assert "Successfully cancelled partition reassignment for: moved-0" in reassign(second, *cancel)
    assert "No partition reassignments found" in reassign(third, "--list")
    first.start()
    cluster.wait_until_serving()

    read = kafka.tool(
        "consumer.ConsoleConsumer", *at(third), "--topic", "moved", "--from-beginning",
        "--max-messages", str(RECORDS), "--timeout-ms", "30000",
    )  # fmt: skip
    assert sorted(read.splitlines()) == sorted(lines)


def test_the_preferred_leader_is_elected(kafka: ApacheKafka, cluster: MixedCluster) -> None:
    first, second, third = (cluster.nodes[id_] for id_ in NODES)
    kafka.tool("TopicCommand", *at(first), "--create", "--topic", "led", "--replica-assignment", "1:2,2:3")
    with BlockingClient(second.address) as client:
        # The replicas are in another order: the second one leads.
        assert client.run(reassign_partitions(client.cluster, {TopicPartition("led", 0): [2, 1]})) == {
            TopicPartition("led", 0): None
        }

    def elect(node: MixedNode, *words: str) -> str:
        return kafka.tool("LeaderElectionCommand", *at(node), "--election-type", "preferred", *words)

    named = ("--topic", "led", "--partition", "0")
    assert "Successfully completed leader election (PREFERRED) for partitions led-0" in elect(third, *named)
    assert "Valid replica already elected for partitions led-0" in elect(first, *named)
    described = kafka.tool("TopicCommand", *at(first), "--describe", "--topic", "led")
    assert re.findall(r"Leader: (\S+)", described) == ["2", "2"]
    assert "Successfully" not in elect(second, "--all-topic-partitions")


def test_the_cluster_and_its_settings(kafka: ApacheKafka, cluster: MixedCluster) -> None:
    first, second = cluster.nodes[1], cluster.nodes[2]
    assert f"Cluster ID: {CLUSTER_ID}" in kafka.tool("ClusterTool", "cluster-id", *at(first))
    listed = kafka.tool("ClusterTool", "list-endpoints", *at(second))
    assert re.findall(r"^(\d+) .* unfenced +broker", listed, re.MULTILINE) == ["1", "2", "3"]
    controllers = ("--bootstrap-controller", first.controller_address)
    listed = kafka.tool("ClusterTool", "list-endpoints", *controllers)
    assert re.findall(r"^(\d+) .* controller", listed, re.MULTILINE) == ["1", "2", "3"]

    config = "kafka.admin.ConfigCommand"
    everyone = ("--entity-type", "brokers", "--entity-default")
    kafka.tool(config, *at(first), *everyone, "--alter", "--add-config", "log.retention.ms=86400000")
    assert "log.retention.ms=86400000" in kafka.tool(config, *at(second), *everyone, "--describe")
    one = ("--entity-type", "brokers", "--entity-name", "3")
    kafka.tool(config, *at(first), *one, "--alter", "--add-config", "log.cleaner.threads=2")
    assert "log.cleaner.threads=2" in kafka.tool(config, *at(second), *one, "--describe")


def test_features_and_the_quorum(kafka: ApacheKafka, cluster: MixedCluster) -> None:
    first, second, third = (cluster.nodes[id_] for id_ in NODES)
    kafka.tool("FeatureCommand", *at(first), "downgrade", "--feature", "group.version=0")
    described = kafka.tool("FeatureCommand", *at(second), "describe")
    assert re.search(r"group.version\s.*FinalizedVersionLevel: 0", described)
    assert re.search(r"kraft.version\s.*FinalizedVersionLevel: 1", described)
    kafka.tool("FeatureCommand", *at(third), "upgrade", "--feature", "group.version=1")

    leader = cluster.leader()
    for way in (at(first), ("--bootstrap-controller", second.controller_address)):
        status = kafka.tool("MetadataQuorumCommand", *way, "describe", "--status")
        assert re.search(rf"LeaderId:\s+{leader.plan.id}\b", status)
        for node in (first, second, third):
            assert node.directory_id in status
            assert f"CONTROLLER://{node.controller_address}" in status
    roles = replication(kafka, third)
    assert roles == {id_: "Leader" if id_ == leader.plan.id else "Follower" for id_ in NODES}


def test_the_metadata_log_of_elections_snapshots_and_voter_changes(kafka: ApacheKafka, cluster: MixedCluster) -> None:
    first = cluster.nodes[1]
    for number in range(30):
        cluster.create_topic(f"many-{number}", at=first)
    joined = cluster.add(JOINS)
    assert replication(kafka, first)[JOINS] == "Observer"
    kafka.tool("MetadataQuorumCommand", *at(first), "--command-config", str(joined.settings_path), "add-controller")
    assert cluster.voters() == {*NODES, JOINS}
    killed = cluster.leader()
    killed.kill()
    cluster.leader()
    cluster.create_topic("elected", at=cluster.nodes[2 if killed is first else 1])
    killed.start()
    cluster.wait_until_serving()
    removed = ("--controller-id", str(JOINS), "--controller-directory-id", joined.directory_id)
    kafka.tool("MetadataQuorumCommand", *at(first), "remove-controller", *removed)
    assert cluster.voters() == set(NODES)
    # The leader removes itself, and becomes a voter again.
    leader = cluster.leader()
    removed = ("--controller-id", str(leader.plan.id), "--controller-directory-id", leader.directory_id)
    kafka.tool("MetadataQuorumCommand", *at(leader), "remove-controller", *removed)
    assert cluster.leader() is not leader
    again = ("--command-config", str(leader.settings_path), "add-controller")
    kafka.tool("MetadataQuorumCommand", *at(leader), *again)
    assert replication(kafka, first)[leader.plan.id] == "Follower"
    cluster.create_topic("last", at=first)

    for node in cluster.nodes.values():
        node.stop()
    for node in cluster.nodes.values():
        said = dump_folder(kafka, node.data_dir, node.data_dir / "__cluster_metadata-0")
        assert len(re.findall(r"LeaderChange: ", said)) >= 3
        assert len(re.findall(r"KRaftVoters ", said)) >= 5
        assert '"name":"last"' in said
        for record in ("SnapshotHeader", "SnapshotFooter", "REGISTER_BROKER_RECORD", "REGISTER_CONTROLLER_RECORD"):
            assert record in said
