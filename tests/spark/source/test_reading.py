"""One split read from a real Quire to Arrow, as a task does it, without Spark around it."""

import itertools
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from pyspark_quire.bounds import Bounds
from pyspark_quire.columns import read_schema
from pyspark_quire.errors import DataLossError, QuireError
from pyspark_quire.fetching import find_part
from pyspark_quire.options import Options, Use
from pyspark_quire.reading import Split, read_split
from pyspark_quire.splits import Range
from quire.client.admin.topics import NewTopic, create_topics, delete_records, delete_topics
from quire.client.offsets import EARLIEST, TopicPartition, list_offsets
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.protocol.records import LOG_APPEND_TIME, Compression, build_batch, walk_batches
from quire.protocol.uuids import to_text
from quire.steps import Steps
from quire.testing import Cluster
from tests.client.model_cluster import ModelCluster
from tests.protocol.records.raw_batches import raw_batch
from tests.spark.conftest import MakeTopic
from tests.spark.filling import DAY_MS, append, append_bytes, open_transaction, record


class Reader:
    """read(topic, start, end) -> the Arrow record batches of that split."""

    def __init__(self, client: BlockingClient, servers: str) -> None:
        self._client = client
        self._servers = servers

    def batches(
        self, topic: str, start: int, end: int, headers: bool = False, **given: Any
    ) -> Iterator[pa.RecordBatch]:
        self._client.run(self._client.cluster.refresh([topic]))
        topic_id = to_text(self._client.cluster.metadata.topics[topic].topic_id)
        options = Options({"kafka.bootstrap.servers": self._servers} | given, Use.BATCH_READ)
        part = Range(TopicPartition(topic, 0), topic_id, start, end)
        return read_split(options, read_schema(headers), Split([part]))

    def rows(self, *args: Any, **given: Any) -> list[dict[str, Any]]:
        return [row for batch in self.batches(*args, **given) for row in batch.to_pylist()]

    def values(self, *args: Any, **given: Any) -> list[tuple[int, bytes | None]]:
        return [(row["offset"], row["value"]) for row in self.rows(*args, **given)]


@pytest.fixture(scope="module")
def reader(client: BlockingClient, servers: str) -> Reader:
    return Reader(client, servers)


@pytest.mark.parametrize("codec", Compression)
def test_every_codec_is_read(client: BlockingClient, make_topic: MakeTopic, reader: Reader, codec: Compression) -> None:
    topic = make_topic()
    append(client, topic, [record(b"%d" % index * 100) for index in range(50)], compression=codec)
    assert reader.values(topic, 0, 50) == [(index, b"%d" % index * 100) for index in range(50)]


def test_only_the_offsets_of_the_split_are_read_from_batches_that_have_more(
    client: BlockingClient, make_topic: MakeTopic, reader: Reader
) -> None:
    topic = make_topic()
    for start in range(0, 30, 10):
        append(client, topic, [record(b"%d" % (start + index)) for index in range(10)])
    assert reader.values(topic, 7, 23) == [(offset, b"%d" % offset) for offset in range(7, 23)]


def test_nulls_empty_values_headers_and_timestamps_are_what_they_were(
    client: BlockingClient, make_topic: MakeTopic, reader: Reader
) -> None:
    topic = make_topic()
    headers = [("a", b"1"), ("", None), ("a", b"")]
    append(client, topic, [record(None, b"", headers=headers), record(b"", None, timestamp=DAY_MS + 5)])
    first, second = reader.rows(topic, 0, 2, headers=True)
    assert (first["key"], first["value"], second["key"], second["value"]) == (b"", None, None, b"")
    assert first["headers"] == [{"key": name, "value": value} for name, value in headers]
    assert second["headers"] is None
    assert (first["timestamp"].timestamp(), second["timestamp"].timestamp()) == (DAY_MS / 1000, (DAY_MS + 5) / 1000)


def test_a_header_whose_name_is_not_text_is_still_read(
    client: BlockingClient, make_topic: MakeTopic, reader: Reader
) -> None:
    topic = make_topic()
    batch = bytes(build_batch([record(b"v", headers=[("name", b"x")])]))
    append_bytes(client, topic, _resealed(batch.replace(b"name", b"\xffame")))
    (row,) = reader.rows(topic, 0, 1, headers=True)
    assert row["headers"] == [{"key": "\ufffdame", "value": b"x"}]


def _resealed(batch: bytes) -> bytes:
    return bytes(raw_batch(batch[61:], 1, base_timestamp=DAY_MS, max_timestamp=DAY_MS))


def test_log_append_time_is_reported_by_its_type(client: BlockingClient, make_topic: MakeTopic, reader: Reader) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    append(client, topic, [record(b"a", timestamp=5), record(b"b", timestamp=6)])
    rows = reader.rows(topic, 0, 2)
    assert [row["timestampType"] for row in rows] == [LOG_APPEND_TIME] * 2
    assert rows[0]["timestamp"] == rows[1]["timestamp"]
    assert rows[0]["timestamp"].timestamp() > DAY_MS / 1000


def test_a_record_of_ten_megabytes_is_read(client: BlockingClient, make_topic: MakeTopic, reader: Reader) -> None:
    topic = make_topic(max_message_bytes=str(12 * 1024 * 1024))
    large = bytes(range(256)) * (10 * 4096)
    append(client, topic, [record(b"before")])
    append(client, topic, [record(large)])
    append(client, topic, [record(b"after")])
    assert reader.values(topic, 0, 3) == [(0, b"before"), (1, large), (2, b"after")]


def test_the_size_of_one_result_is_bounded_however_much_a_batch_expands_to(
    client: BlockingClient, make_topic: MakeTopic, reader: Reader
) -> None:
    topic = make_topic()
    append(client, topic, [record(bytes(100_000)) for _ in range(150)], compression=Compression.ZSTD)
    sizes = [batch.nbytes for batch in reader.batches(topic, 0, 150)]
    assert sum(sizes) > 15_000_000
    assert max(sizes) < 9_000_000


def test_records_of_aborted_transactions_are_hidden_from_read_committed(
    client: BlockingClient, make_topic: MakeTopic, reader: Reader
) -> None:
    topic = make_topic()

    def write() -> Steps[None]:
        producer = Producer(client.cluster, ProducerConfig(transactional_id=f"{topic}-writer"))
        yield from producer.init_transactions()
        yield from producer.prepare(topic)
        for value, commit in ((b"kept", True), (b"aborted", False), (b"kept too", True)):
            producer.begin()
            producer.send(topic, value, partition=0)
            yield producer.flush()
            yield from (producer.commit() if commit else producer.abort())

    client.run(write())
    assert reader.values(topic, 0, 6) == [(0, b"kept"), (2, b"aborted"), (4, b"kept too")]
    committed = {"kafka.isolation.level": "read_committed"}
    assert reader.values(topic, 0, 6, **committed) == [(0, b"kept"), (4, b"kept too")]
    assert reader.values(topic, 1, 4, **committed) == []


def test_a_reader_blocked_by_an_open_transaction_learns_how_to_find_it(
    client: BlockingClient, make_topic: MakeTopic, reader: Reader
) -> None:
    topic = make_topic()
    producer = open_transaction(client, topic)
    options = {"kafka.isolation.level": "read_committed", "kafkaConsumer.pollTimeoutMs": "100"}
    with pytest.raises(
        QuireError, match=r"at offset 0, although .* to 1; if a transaction is open .*transactions list"
    ):
        reader.values(topic, 0, 1, **options)
    client.run(producer.commit())
    assert reader.values(topic, 0, 1, **options) == [(0, b"open")]


def test_a_batch_that_cannot_be_decompressed_is_an_error_with_its_place(fresh_quire_cluster: Cluster) -> None:
    """A node checks what it appends, so only a write to its files can produce such a batch with a correct CRC."""
    servers = fresh_quire_cluster.bootstrap_servers
    broken = raw_batch(b"not zstd at all", 1, attributes=int(Compression.ZSTD), base_offset=1, leader_epoch=0)
    with BlockingClient(servers) as client:
        assert client.run(create_topics(client.cluster, [NewTopic("t", 1, 1)]))
        client.run(list_offsets(client.cluster, {TopicPartition("t", 0): EARLIEST}))
        append(client, "t", [record(b"fine")])
    fresh_quire_cluster.kill()
    (log,) = fresh_quire_cluster.data_dir.glob("**/t-0/*.log")
    written = log.read_bytes()
    log.write_bytes(written[: walk_batches(written)[-1].end] + broken)
    fresh_quire_cluster.restart()
    with BlockingClient(servers) as client:
        reader = Reader(client, servers)
        assert reader.values("t", 0, 1) == [(0, b"fine")]
        with pytest.raises(QuireError, match=r"^t-0: .*batch at offset 1: .*cannot be decompressed as zstd"):
            reader.values("t", 0, 2)


def test_several_partitions_are_read_by_one_task_also_when_one_of_them_lost_records(
    client: BlockingClient, servers: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    for partition in range(3):
        append(client, topic, [record(b"%d" % offset) for offset in range(5)], partition)
    client.run(delete_records(client.cluster, {TopicPartition(topic, 1): 3}))
    topic_id = to_text(client.cluster.metadata.topics[topic].topic_id)
    parts = [Range(TopicPartition(topic, partition), topic_id, 1, 5) for partition in range(3)]
    options = Options({"kafka.bootstrap.servers": servers, "failOnDataLoss": "false"}, Use.BATCH_READ)
    found: dict[int, list[int]] = {}
    for batch in read_split(options, read_schema(False), Split(parts)):
        for row in batch.to_pylist():
            found.setdefault(row["partition"], []).append(row["offset"])
    assert found == {0: [1, 2, 3, 4], 1: [3, 4], 2: [1, 2, 3, 4]}


@pytest.mark.parametrize("fail", [True, False])
def test_offsets_that_went_away_after_planning_are_an_error_or_skipped_with_a_warning(
    client: BlockingClient,
    make_topic: MakeTopic,
    reader: Reader,
    caplog: pytest.LogCaptureFixture,
    fail: bool,
) -> None:
    topic = make_topic()
    append(client, topic, [record(b"%d" % index) for index in range(10)])
    client.run(delete_records(client.cluster, {TopicPartition(topic, 0): 6}))
    sentence = f"{topic}-0: offsets 2 to 5 are gone, the partition begins at 6 now"
    if fail:
        with pytest.raises(DataLossError, match=sentence):
            reader.values(topic, 2, 8)
        return
    with caplog.at_level(logging.WARNING):
        assert reader.values(topic, 2, 8, failOnDataLoss="false") == [(6, b"6"), (7, b"7")]
    assert sentence in caplog.text
    assert "4 offsets skipped" in caplog.text


def test_a_topic_recreated_after_planning_is_not_read_in_place_of_the_old_one(
    client: BlockingClient, make_topic: MakeTopic, reader: Reader
) -> None:
    topic = make_topic()
    append(client, topic, [record(b"old")] * 3)
    batches = reader.batches(topic, 0, 3)
    assert client.run(delete_topics(client.cluster, [topic])) == {topic: None}
    make_topic(name=topic)
    append(client, topic, [record(b"new")] * 3)
    with pytest.raises(DataLossError, match=f"{topic}-0: topic {topic} was deleted and created again"):
        list(batches)


def test_a_topic_deleted_after_planning_is_an_error(
    client: BlockingClient, make_topic: MakeTopic, reader: Reader
) -> None:
    topic = make_topic()
    append(client, topic, [record(b"old")] * 3)
    batches = reader.batches(topic, 0, 3)
    client.run(delete_topics(client.cluster, [topic]))
    with pytest.raises(DataLossError, match=f"{topic}-0 no longer exists"):
        list(batches)


@pytest.mark.parametrize("again", [True, False])
def test_the_unread_records_of_a_deleted_topic_are_counted_as_skipped(
    client: BlockingClient, make_topic: MakeTopic, reader: Reader, caplog: pytest.LogCaptureFixture, again: bool
) -> None:
    topic = make_topic()
    append(client, topic, [record(b"old")] * 3)
    batches = reader.batches(topic, 1, 3, failOnDataLoss="false")
    client.run(delete_topics(client.cluster, [topic]))
    if again:
        make_topic(name=topic)
    with caplog.at_level(logging.WARNING):
        assert list(batches) == []
    assert "2 offsets skipped" in caplog.text


@pytest.mark.parametrize("fail", [True, False])
def test_a_partition_that_ends_before_the_planned_end_is_an_error_or_read_as_far_as_it_goes(
    client: BlockingClient, make_topic: MakeTopic, reader: Reader, caplog: pytest.LogCaptureFixture, fail: bool
) -> None:
    topic = make_topic()
    append(client, topic, [record(b"there")] * 3)
    impatient = {"kafkaConsumer.pollTimeoutMs": "300"}
    sentence = f"{topic}-0: offset 5 is not there, the partition ends at 3"
    if fail:
        with pytest.raises(DataLossError, match=sentence):
            reader.values(topic, 1, 5, **impatient)
        return
    assert reader.values(topic, 1, 5, failOnDataLoss="false", **impatient) == [(1, b"there"), (2, b"there")]
    assert sentence in caplog.text
    assert "2 offsets skipped" in caplog.text


def test_a_broker_that_does_not_know_a_topic_yet_is_asked_again_before_its_records_count_as_lost() -> None:
    model = ModelCluster()
    topic = model.create("t")
    part = Range(TopicPartition("t", 0), to_text(topic.topic_id), 0, 3)
    del model.topics["t"]
    model.clock.call_later(500, lambda: model.topics.update({"t": topic}))
    assert model.run(find_part(model.client(), part)) == (part.topic_id, Bounds(0, 0))
    del model.topics["t"]
    assert model.run(find_part(model.client(), part)) is None


def test_a_compacted_topic_is_read_with_its_gaps() -> None:
    settings = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "internal.segment.bytes": "20000",
        "delete.retention.ms": "0",
    }
    with Cluster(config={"log.cleaner.backoff.ms": 50}) as cluster, BlockingClient(cluster.bootstrap_servers) as client:
        partition = TopicPartition("t", 0)
        client.run(create_topics(client.cluster, [NewTopic("t", 1, 1, settings)]))
        client.run(list_offsets(client.cluster, {partition: EARLIEST}))
        keys = [b"once %d" % offset if offset % 50 == 0 else b"often %d" % (offset % 7) for offset in range(3000)]
        for start in range(0, 3000, 100):
            append(client, "t", [record(b"%d" % offset, keys[offset]) for offset in range(start, start + 100)])
        reader = Reader(client, cluster.bootstrap_servers)
        found = eventually(lambda: reader.rows("t", 0, 3000), lambda rows: len(rows) < 1500)
        offsets = [row["offset"] for row in found]
        assert offsets == sorted(set(offsets))
        last = {key: b"%d" % offset for offset, key in enumerate(keys)}
        assert {row["key"]: row["value"] for row in found} == last
        assert all(row["value"] == b"%d" % row["offset"] for row in found)
        gap = next(left + 1 for left, right in itertools.pairwise(offsets) if right > left + 1)
        assert reader.values("t", gap, gap + 1) == []


T = TypeVar("T")


def eventually(ask: Callable[[], T], right: Callable[[T], bool]) -> T:
    """Repeats the request until the answer is right, for at most a minute and a half."""
    deadline = time.monotonic() + 90
    while not right(found := ask()):
        assert time.monotonic() < deadline, f"still {found!r:.500}"
    return found
