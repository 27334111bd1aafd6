"""Apache Kafka's DumpLogSegments on the files that Quire writes."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from interop.apache_kafka import ApacheKafka
from quire.testing import Cluster

RECORDS = 3000
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a stopped Quire with several segments, all codecs and a producer's state."""
    folder = tmp_path_factory.mktemp("files") / "data"
    with Cluster(data_dir=folder) as cluster:
        fill(cluster.bootstrap_servers)
    return folder


def fill(bootstrap: str) -> None:
    topic = NewTopic("dumped", num_partitions=1, replication_factor=1, config={"segment.bytes": str(1 << 20)})
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([topic])["dumped"].result(10)
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True})
        for number in range(RECORDS):
            producer.produce("dumped", b"%d" % number * 100, key=b"%d" % number, partition=0)
        assert producer.flush(20) == 0


def dump(kafka: ApacheKafka, path: Path, *options: str) -> str:
    return kafka.tool("DumpLogSegments", "--files", str(path), *options)


def test_every_batch_and_record_of_every_segment_is_valid(kafka: ApacheKafka, files: Path) -> None:
    segments = sorted((files / "dumped-0").glob("*.log"))
    assert len(segments) > 1
    offsets: list[int] = []
    for segment in segments:
        said = dump(kafka, segment, "--print-data-log", "--deep-iteration")
        assert "isvalid: false" not in said
        offsets += [int(line.split()[2]) for line in said.splitlines() if line.startswith("| offset: ")]
    assert offsets == list(range(len(CODECS) * RECORDS))


def test_indexes_agree_with_the_log(kafka: ApacheKafka, files: Path) -> None:
    for path in sorted((files / "dumped-0").glob("*.*index")):
        said = dump(kafka, path, *(["--verify-index-only"] if path.suffix == ".index" else []))
        assert not any(word in said for word in ("Mismatches", "out of order", "failed")), said


def test_producer_snapshots_are_understood(kafka: ApacheKafka, files: Path) -> None:
    snapshots = sorted((files / "dumped-0").glob("*.snapshot"))
    assert snapshots
    assert "producerId: " in dump(kafka, snapshots[-1])


def test_the_metadata_log_is_understood(kafka: ApacheKafka, files: Path) -> None:
    segment = files / "__cluster_metadata-0" / "00000000000000000000.log"
    said = dump(kafka, segment, "--cluster-metadata-decoder")
    for expected in ('"type":"TOPIC_RECORD"', '"name":"dumped"', '"type":"PARTITION_RECORD"', "LeaderChange"):
        assert expected.lower() in said.lower()
    assert "isvalid: false" not in said


def test_the_storage_tool_reads_the_directory(kafka: ApacheKafka, files: Path, tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:2\nlog.dirs={files}\n"
    )
    said = kafka.tool("kafka.tools.StorageTool", "info", "-c", str(properties))
    assert "Found metadata: {cluster.id=" in said
    assert "problem" not in said.lower()
