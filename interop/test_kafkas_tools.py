"""Apache Kafka's own command line tools against a running Quire."""

import re
from pathlib import Path

from interop.apache_kafka import ApacheKafka
from quire.testing import Cluster

RECORDS = 20_000


def test_topic_command_makes_lists_describes_alters_and_deletes(kafka: ApacheKafka, quire: Cluster) -> None:
    at = ("--bootstrap-server", quire.bootstrap_servers)
    kafka.tool("TopicCommand", *at, "--create", "--topic", "made", "--partitions", "3", "--config", "retention.ms=5000")
    assert "made" in kafka.tool("TopicCommand", *at, "--list").split()
    described = kafka.tool("TopicCommand", *at, "--describe", "--topic", "made")
    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=5000" in described
    assert len(re.findall(r"Leader: \d+\s+Replicas: \d+\s+Isr: \d+", described)) == 3
    kafka.tool("TopicCommand", *at, "--alter", "--topic", "made", "--partitions", "5")
    assert "PartitionCount: 5" in kafka.tool("TopicCommand", *at, "--describe", "--topic", "made")
    refused = kafka.tool("TopicCommand", *at, "--create", "--topic", "made", fails=True)
    assert "already exists" in refused
    kafka.tool("TopicCommand", *at, "--delete", "--topic", "made")
    assert "made" not in kafka.tool("TopicCommand", *at, "--list").split()


def test_producer_performance_and_console_consumer(kafka: ApacheKafka, quire: Cluster) -> None:
    at = ("--bootstrap-server", quire.bootstrap_servers)
    kafka.tool("TopicCommand", *at, "--create", "--topic", "perf", "--partitions", "1")
    options = ("--num-records", str(RECORDS), "--record-size", "100", "--throughput", "-1")
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        said = kafka.tool(
            "ProducerPerformance", *at, "--topic", "perf", *options, "--command-property", f"compression.type={codec}"
        )
        assert f"{RECORDS} records sent" in said
    read = kafka.tool(
        "consumer.ConsoleConsumer", *at, "--topic", "perf", "--partition", "0", "--offset", "earliest",
        "--max-messages", str(5 * RECORDS), "--timeout-ms", "20000",
    )  # fmt: skip
    lines = read.splitlines()
    assert len(lines) == 5 * RECORDS
    assert {len(line) for line in lines} == {100}


def test_console_producer_writes_and_console_consumer_shows_keys_headers_and_offsets(
    kafka: ApacheKafka, quire: Cluster
) -> None:
    at = ("--bootstrap-server", quire.bootstrap_servers)
    written = "".join(f"h:{n}\tk{n}=value {n}\n" for n in range(10))
    kafka.tool(
        "ConsoleProducer", *at, "--topic", "console", "--reader-property", "parse.key=true",
        "--reader-property", "key.separator==", "--reader-property", "parse.headers=true", text=written,
    )  # fmt: skip
    read = kafka.tool(
        "consumer.ConsoleConsumer", *at, "--topic", "console", "--partition", "0", "--offset", "4",
        "--max-messages", "3", "--timeout-ms", "20000", "--formatter-property", "print.key=true",
        "--formatter-property", "print.headers=true", "--formatter-property", "print.offset=true",
    )  # fmt: skip
    assert read.splitlines() == [f"Offset:{n}\th:{n}\tk{n}\tvalue {n}" for n in (4, 5, 6)]


def test_offsets_and_deleted_records(kafka: ApacheKafka, quire: Cluster, tmp_path: Path) -> None:
    at = ("--bootstrap-server", quire.bootstrap_servers)
    lines = "".join(f"{n}\n" for n in range(50))
    kafka.tool("ConsoleProducer", *at, "--topic", "offsets", text=lines)
    assert kafka.tool("GetOffsetShell", *at, "--topic", "offsets").split() == ["offsets:0:50"]
    wanted = tmp_path / "delete.json"
    wanted.write_text('{"partitions": [{"topic": "offsets", "partition": 0, "offset": 20}], "version": 1}')
    assert "low_watermark: 20" in kafka.tool("DeleteRecordsCommand", *at, "--offset-json-file", str(wanted))
    assert kafka.tool("GetOffsetShell", *at, "--topic", "offsets", "--time", "earliest").split() == ["offsets:0:20"]


def test_settings(kafka: ApacheKafka, quire: Cluster) -> None:
    at = ("--bootstrap-server", quire.bootstrap_servers)
    kafka.tool("TopicCommand", *at, "--create", "--topic", "settings")
    of_topic = ("kafka.admin.ConfigCommand", *at, "--entity-type", "topics", "--entity-name", "settings")
    kafka.tool(*of_topic, "--alter", "--add-config", "retention.ms=1234,max.message.bytes=5000")
    described = kafka.tool(*of_topic, "--describe")
    assert "retention.ms=1234" in described
    assert "max.message.bytes=5000" in described
    kafka.tool(*of_topic, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms=1234" not in kafka.tool(*of_topic, "--describe")
    (node_id,) = quire.pids
    of_broker = ("kafka.admin.ConfigCommand", *at, "--entity-type", "brokers", "--entity-name", str(node_id))
    assert f"node.id={node_id}" in kafka.tool(*of_broker, "--describe", "--all")


def test_the_cluster_describes_itself(kafka: ApacheKafka, quire: Cluster) -> None:
    at = ("--bootstrap-server", quire.bootstrap_servers)
    (node_id,) = quire.pids
    assert "Cluster ID: " in kafka.tool("ClusterTool", "cluster-id", *at)
    versions = kafka.tool("BrokerApiVersionsCommand", *at)
    assert "Produce(0): 0 to 13" in versions
    assert re.search(rf"LeaderId:\s+{node_id}\b", kafka.tool("MetadataQuorumCommand", *at, "describe", "--status"))
    assert "metadata.version" in kafka.tool("FeatureCommand", *at, "describe")
    assert '"error":null' in kafka.tool("LogDirsCommand", *at, "--describe")
