"""A data directory that Quire formatted and filled, opened by an Apache Kafka server, and by Quire again."""

from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from interop.apache_kafka import ApacheKafka, settings
from quire.storage.directory import checkpoints
from quire.storage.recovery.gap_mark import MARK
from quire.testing import Cluster, WireConnection
from tests.wire.clients import Confluent, Message
from tests.wire.raw import list_offset, topic_metadata

TOPIC = "kept"
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PER_CODEC = 200


def messages(codec: str) -> list[Message]:
    return [
        Message(f"{codec} {n}".encode() * 10, key=b"%d" % n, headers=[("codec", codec.encode())])
        for n in range(PER_CODEC)
    ]


def read_all(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]]:
    with WireConnection(bootstrap) as connection:
        end = list_offset(connection, topic, -1).offset
    return [record.content for record in Confluent().consume(bootstrap, topic, end)]


def marked(data_dir: Path) -> list[bool]:
    """Whether the checkpoints say that Quire alone has written to the directory."""
    names = (checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS)
    return [f"{MARK[0]} {MARK[1]} 0\n" in (data_dir / name).read_text() for name in names]


def test_kafka_serves_what_quire_stored_and_quire_what_kafka_added(kafka: ApacheKafka, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    expected = []
    with Cluster(data_dir=data_dir) as quire:
        admin = AdminClient({"bootstrap.servers": quire.bootstrap_servers, "log_level": 0})
        new = NewTopic(TOPIC, num_partitions=2, replication_factor=1, config={"retention.ms": "-1"})
        admin.create_topics([new])[TOPIC].result(10)
        for codec in CODECS:
            Confluent().produce(quire.bootstrap_servers, TOPIC, messages(codec), compression=codec, idempotent=True)
            expected += [(m.key, m.value, m.headers) for m in messages(codec)]
        assert read_all(quire.bootstrap_servers, TOPIC) == expected
        with WireConnection(quire.bootstrap_servers) as connection:
            topic_id = topic_metadata(connection, TOPIC).topic_id
    assert marked(data_dir) == [True, True]

    with kafka.server(settings(data_dir), tmp_path) as address:
        assert read_all(address, TOPIC) == expected
        with WireConnection(address) as connection:
            found = topic_metadata(connection, TOPIC)
        assert (found.topic_id, len(found.partitions)) == (topic_id, 2)
        resource = confluent_kafka.admin.ConfigResource("topic", TOPIC)
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        described = admin.describe_configs([resource])[resource].result(20)
        assert described["retention.ms"].value == "-1"
        Confluent().produce(address, TOPIC, messages("none"), idempotent=True)
        expected += [(m.key, m.value, m.headers) for m in messages("none")]
        assert read_all(address, TOPIC) == expected
    assert marked(data_dir) == [False, False], "Kafka has compacted, or may have"

    with Cluster(data_dir=data_dir) as quire:
        assert read_all(quire.bootstrap_servers, TOPIC) == expected
    assert marked(data_dir) == [True, True]
