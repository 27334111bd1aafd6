"""Every kind of log that Quire writes, after a clean stop and after a kill, read by Apache Kafka.

DumpLogSegments reads every file without an error, and prints the same facts as `quire dump-log`. Then Apache Kafka
starts on the directory and serves every record at its offset.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from interop.apache_kafka import ApacheKafka, settings
from interop.dump_log_segments import dump_directory
from interop.librdkafka import read_everything
from interop.record_golden import settled
from interop.scenarios import COMPACT, SCENARIOS, WAIT_S, Scenario, Server, cleaned, create, wait_until
from quire.cli.storage.dump.files import dump_file
from quire.cli.storage.dump.read_only import ReadOnlyFile
from quire.cli.storage.dump.wanted import Wanted
from quire.testing import Cluster
from tests.golden.coordinated import Known, coordinated, when_replayed
from tests.golden.kafka_dump import in_kafkas_words, parse
from tests.golden.served import Partitions, everything
from tests.wire.clients import eventually


class Written(NamedTuple):
    data_dir: Path
    served: Partitions
    known: Known


ONE_PARTITION_EACH = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
"""Internal topics have as few partitions as in Apache Kafka's recordings, because its tool is slow."""

ENDED = [(scenario, end) for scenario in SCENARIOS for end in ("stopped", "killed")]


@pytest.fixture(scope="module", params=ENDED, ids=[f"{scenario.name}-{end}" for scenario, end in ENDED])
def written(
    request: pytest.FixtureRequest, kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Written]:
    """A data directory that Quire filled, and what Quire served before it was stopped or killed."""
    scenario: Scenario
    scenario, end = request.param
    data_dir = tmp_path_factory.mktemp(scenario.name) / "data"
    with Cluster(data_dir=data_dir, config=ONE_PARTITION_EACH | dict(scenario.settings)) as quire:
        kept = scenario.fill(Server(kafka, quire.bootstrap_servers, data_dir))
        # In this order: a request to a coordinator makes it write records that could have waited.
        known = coordinated(quire.bootstrap_servers)
        served = settled(quire.bootstrap_servers)
        if end == "killed":
            quire.kill()
    del kept
    assert (data_dir / ".kafka_cleanshutdown").exists() == (end == "stopped")
    yield Written(data_dir, served, known)


def test_both_tools_say_the_same_of_every_file(kafka: ApacheKafka, written: Written) -> None:
    dumped = parse(dump_directory(kafka, written.data_dir))
    assert any(name.endswith(".log") and said for name, said in dumped.items())
    for name, said in dumped.items():
        path = written.data_dir / name
        facts = dump_file(str(path), Wanted(records=True), ReadOnlyFile)
        assert [words for fact in facts if (words := in_kafkas_words(path, fact)) is not None] == said, name


def test_kafka_serves_every_record_at_its_offset(kafka: ApacheKafka, written: Written, tmp_path: Path) -> None:
    with kafka.server(settings(written.data_dir), tmp_path) as address:
        served = everything(address)
        assert {name: served[name] for name in written.served} == written.served
        assert read_everything(address, written.served) == written.served


def test_kafkas_coordinators_know_what_quires_knew(kafka: ApacheKafka, written: Written, tmp_path: Path) -> None:
    with kafka.server(settings(written.data_dir), tmp_path) as address:
        eventually(lambda: when_replayed(address) == written.known)


def test_kafka_serves_all_that_was_acknowledged_before_a_kill_under_load(kafka: ApacheKafka, tmp_path: Path) -> None:
    acknowledged: dict[int, bytes] = {}

    def delivered(error: Any, message: Any) -> None:
        if error is None:
            acknowledged[message.offset()] = message.value()

    data_dir = tmp_path / "data"
    with Cluster(data_dir=data_dir) as quire:
        create(Server(kafka, quire.bootstrap_servers, data_dir), "loaded", config={"segment.bytes": str(1 << 20)})
        producer = Producer({"bootstrap.servers": quire.bootstrap_servers, "linger.ms": 1, "log_level": 0})
        number = 0
        while len(acknowledged) < 5000:
            producer.produce("loaded", b"%d" % number * 100, partition=0, on_delivery=delivered)
            number += 1
            producer.poll(0)
        quire.kill()
        producer.purge()
        producer.flush(1)
    dump_directory(kafka, data_dir)
    with kafka.server(settings(data_dir), tmp_path) as address:
        records = everything(address)["loaded-0"]["records"]
    served = {record["offset"]: record["value"].encode() for record in records}
    assert {offset: served[offset] for offset in acknowledged} == acknowledged


def test_the_indexes_of_compacted_segments_lead_to_their_batches(kafka: ApacheKafka, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    chance = random.Random(7)
    with Cluster(data_dir=data_dir, config={"log.cleaner.backoff.ms": "100"}) as quire:
        server = Server(kafka, quire.bootstrap_servers, data_dir)
        create(server, "indexed", config=COMPACT | {"segment.bytes": str(1 << 20), "segment.ms": "604800000"})
        for codec in ("none", "lz4"):
            producer = Producer(
                {"bootstrap.servers": server.address, "compression.type": codec, "batch.num.messages": 40}
            )
            for _ in range(15_000):
                key = f"key {chance.randrange(8000)}"
                producer.produce("indexed", chance.randbytes(100).hex(), key, partition=0)
            assert producer.flush(WAIT_S) == 0
        active = max(int(path.stem) for path in (data_dir / "indexed-0").glob("*.log"))
        wait_until(lambda: cleaned(server, "indexed", active), "all but the active segment is cleaned")
    dumped = parse(dump_directory(kafka, data_dir))
    first = f"indexed-0/{0:020d}"
    assert len(dumped[f"{first}.index"]) > 10 and len(dumped[f"{first}.timeindex"]) > 1
    batches = [line for line in dumped[f"{first}.log"] if "baseOffset" in line]
    assert any(int(line["count"]) <= int(line["lastOffset"]) - int(line["baseOffset"]) for line in batches)
