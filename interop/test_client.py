"""Quire's own client on Apache Kafka: producing, transactions, reading, offsets; blocking and on asyncio."""

import asyncio
from collections.abc import Iterator

import pytest

from interop.apache_kafka import ApacheKafka, settings
from quire.client.admin.topics import NewTopic, create_topics
from quire.client.consumer import BEGINNING, Consumer, ConsumerConfig, Start
from quire.client.group_offsets import OffsetAndMetadata, commit_offsets, fetch_offsets
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_asyncio import AsyncClient
from quire.client.shell_blocking import BlockingClient
from quire.client.transaction_requests import TRANSACTION_VERSION
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import HEADER_BYTES, Compression, Record, build_batch
from quire.testing import Proxy
from tests.wire.clients import eventually

RECORDS = 2000
PARTITIONS = 3


@pytest.fixture(scope="module")
def servers(kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("kafka")
    chosen = settings(folder / "data")
    kafka.format(chosen, folder, "4L6g3nShT-eMCtK--X86sw")
    with kafka.server(chosen, folder) as address:
        yield address


@pytest.fixture
def client(servers: str) -> Iterator[BlockingClient]:
    with BlockingClient(servers) as client:
        yield client


@pytest.fixture
def topic(client: BlockingClient, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    client.run(create_topics(client.cluster, [NewTopic(name, PARTITIONS, 1)]))
    return name


@pytest.fixture(params=[1, 2], ids=["protocol-1", "protocol-2"])
def protocol(client: BlockingClient, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Apache Kafka finalizes protocol 2, and answers clients of protocol 1 as before."""
    if request.param == 1:
        monkeypatch.setattr(client.cluster, "feature_level", lambda name: 1)
    chosen: int = request.param
    return chosen


def topic_partitions(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for index in range(PARTITIONS)]


def read(client: BlockingClient, topic: str, *, read_committed: bool = False, start: Start = BEGINNING) -> list[bytes]:
    """The values up to the current end of the topic, partition by partition."""
    ends = client.run(
        list_offsets(
            client.cluster, dict.fromkeys(topic_partitions(topic), LATEST), isolation_level=int(read_committed)
        )
    )
    consumer = Consumer(client.cluster, ConsumerConfig(read_committed=read_committed, max_wait_ms=50))
    client.run(consumer.assign(dict.fromkeys(ends, start)))
    found: dict[TopicPartition, list[bytes]] = {partition: [] for partition in ends}
    while any(consumer.positions[partition] < ends[partition].offset for partition in ends):
        client.loop.run_until(consumer.arrival(), timeout_ms=30_000)
        for fetched in consumer.poll():
            found[fetched.topic_partition] += [record.value or b"" for record in fetched.records()]
    consumer.close()
    return [value for partition in topic_partitions(topic) for value in found[partition]]


def wait_until_read(client: BlockingClient, topic: str, expected: list[bytes]) -> None:
    """Apache Kafka answers the end of a transaction before its markers are written."""
    eventually(lambda: read(client, topic, read_committed=True) == expected)


def wait_until_committed(
    client: BlockingClient, group: str, partition: TopicPartition, expected: OffsetAndMetadata
) -> None:
    eventually(lambda: client.run(fetch_offsets(client.cluster, group, [partition])) == {partition: expected})


def prepared(client: BlockingClient, topic: str, config: ProducerConfig) -> Producer:
    producer = Producer(client.cluster, config)
    if config.transactional_id is not None:
        client.run(producer.init_transactions())
    client.run(producer.prepare(topic))
    return producer


def flush(client: BlockingClient, producer: Producer) -> None:
    client.loop.run_until(producer.flush(), timeout_ms=60_000)
    assert producer.first_error is None


@pytest.mark.parametrize("compression", list(Compression))
def test_everything_is_read_unchanged(client: BlockingClient, topic: str, compression: Compression) -> None:
    producer = prepared(client, topic, ProducerConfig(compression=compression, batch_bytes=4000))
    for number in range(RECORDS):
        producer.send(topic, b"%d" % number, partition=number % PARTITIONS, key=b"k", headers=[("h", b"x")])
    flush(client, producer)
    expected = [b"%d" % number for index in range(PARTITIONS) for number in range(index, RECORDS, PARTITIONS)]
    assert read(client, topic) == expected


@pytest.mark.parametrize("compression", list(Compression))
def test_batches_of_other_encoders(client: BlockingClient, topic: str, compression: Compression) -> None:
    producer = prepared(client, topic, ProducerConfig(compression=compression))
    values = [b"%d" % number for number in range(500)]
    batch = build_batch([Record(0, 0, b"key", value, []) for value in values])
    for index in range(PARTITIONS):
        producer.send_encoded(topic, index, bytearray(HEADER_BYTES) + batch[HEADER_BYTES:], len(values), 1_700_000_000)
    flush(client, producer)
    assert read(client, topic) == values * PARTITIONS


def test_lost_answers_leave_no_duplicate_and_no_gap(servers: str, client: BlockingClient, topic: str) -> None:
    with Proxy(servers) as proxy, BlockingClient(proxy.address) as lossy:
        producer = prepared(lossy, topic, ProducerConfig(batch_bytes=500, linger_ms=0))
        for first in range(0, RECORDS, 200):
            proxy.lose_answers("Produce", 1)
            for number in range(first, first + 200):
                producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
            lossy.loop.run_until(producer.flush(), timeout_ms=60_000)
        assert proxy.lost["Produce"] >= 5
    expected = [b"%d" % number for index in range(PARTITIONS) for number in range(index, RECORDS, PARTITIONS)]
    assert read(client, topic) == expected


def test_transactions_with_offsets(client: BlockingClient, topic: str, protocol: int) -> None:
    producer = prepared(client, topic, ProducerConfig(transactional_id=f"id-{topic}", linger_ms=0))
    group, topic_partition = f"group-{topic}", TopicPartition(topic, 0)
    for number in range(6):
        producer.begin()
        for index in range(PARTITIONS):
            producer.send(topic, b"%d-%d" % (number, index), partition=index)
        client.run(producer.send_offsets(group, {topic_partition: OffsetAndMetadata(number, f"after {number}")}))
        if number % 3 == 1:
            client.loop.run_until(producer.flush(), timeout_ms=30_000)
            client.run(producer.abort())
        else:
            client.run(producer.commit())
    kept = [b"%d-%d" % (number, index) for index in range(PARTITIONS) for number in (0, 2, 3, 5)]
    wait_until_read(client, topic, kept)
    assert len(read(client, topic)) == 6 * PARTITIONS
    wait_until_committed(client, group, topic_partition, OffsetAndMetadata(5, "after 5"))


@pytest.mark.parametrize("api", ["InitProducerId", "Produce", "TxnOffsetCommit", "EndTxn"])
def test_lost_answers_in_a_transaction(
    servers: str, client: BlockingClient, topic: str, protocol: int, api: str
) -> None:
    with Proxy(servers) as proxy, BlockingClient(proxy.address) as lossy:
        if protocol == 1:
            lossy.cluster.feature_level = client.cluster.feature_level  # type: ignore[method-assign]
        if api == "InitProducerId":
            proxy.lose_answers(api, 1)
        producer = prepared(lossy, topic, ProducerConfig(transactional_id=f"id-{topic}", linger_ms=0))
        for number in range(3):
            if api != "InitProducerId":
                proxy.lose_answers(api, 1)
            producer.begin()
            producer.send(topic, b"%d" % number, partition=0)
            offsets = {TopicPartition(topic, 0): OffsetAndMetadata(number)}
            lossy.run(producer.send_offsets(f"group-{topic}", offsets))
            lossy.run(producer.abort() if number == 1 else producer.commit())
        assert proxy.lost[api] >= 1
    wait_until_read(client, topic, [b"0", b"2"])
    wait_until_committed(client, f"group-{topic}", TopicPartition(topic, 0), OffsetAndMetadata(2))


def test_a_second_producer_of_an_id_fences_the_first(client: BlockingClient, topic: str, protocol: int) -> None:
    config = ProducerConfig(transactional_id=f"id-{topic}", linger_ms=0)
    first = prepared(client, topic, config)
    first.begin()
    first.send(topic, b"lost", partition=0)
    client.loop.run_until(first.flush(), timeout_ms=30_000)
    second = prepared(client, topic, config)
    second.begin()
    second.send(topic, b"kept", partition=0)
    client.run(second.commit())
    with pytest.raises(ApiError) as caught:
        client.run(first.commit())
    assert caught.value.code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    wait_until_read(client, topic, [b"kept"])


def test_a_record_that_is_refused_leaves_only_the_abort(client: BlockingClient, topic: str, protocol: int) -> None:
    config = ProducerConfig(transactional_id=f"id-{topic}", linger_ms=0, batch_bytes=4_000_000, request_bytes=5_000_000)
    producer = prepared(client, topic, config)
    producer.begin()
    producer.send(topic, b"small", partition=0)
    producer.send(topic, b"x" * 2_000_000, partition=1)
    with pytest.raises(ApiError) as caught:
        client.run(producer.commit())
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    client.run(producer.abort())
    producer.begin()
    producer.send(topic, b"next", partition=0)
    client.run(producer.commit())
    wait_until_read(client, topic, [b"next"])


def test_the_cluster_says_which_protocol_it_speaks(client: BlockingClient) -> None:
    client.run(client.cluster.refresh(None))
    assert client.cluster.feature_level(TRANSACTION_VERSION) == 2


def test_offsets_are_committed_fetched_and_found_by_time(client: BlockingClient, topic: str) -> None:
    producer = prepared(client, topic, ProducerConfig(linger_ms=0, batch_bytes=100))
    for number in range(10):
        producer.send(topic, b"%d" % number, partition=0, timestamp_ms=1_700_000_000_000 + 1000 * number)
    flush(client, producer)
    topic_partition = TopicPartition(topic, 0)
    for wanted, offset in ((1_700_000_004_500, 5), (1_700_000_009_001, -1), (EARLIEST, 0), (LATEST, 10)):
        assert client.run(list_offsets(client.cluster, {topic_partition: wanted}))[topic_partition].offset == offset
    later = read(client, topic, start=Start(timestamp_ms=1_700_000_007_000))
    assert later == [b"7", b"8", b"9"]
    offsets = {topic_partition: OffsetAndMetadata(7, "seven"), TopicPartition(topic, 1): OffsetAndMetadata(0)}
    client.run(commit_offsets(client.cluster, f"group-{topic}", offsets))
    assert client.run(fetch_offsets(client.cluster, f"group-{topic}")) == offsets
    assert client.run(fetch_offsets(client.cluster, f"group-{topic}", [topic_partition])) == {
        topic_partition: offsets[topic_partition]
    }


def test_on_asyncio(servers: str, client: BlockingClient, topic: str) -> None:
    async def main() -> list[bytes]:
        async with AsyncClient(servers) as own:
            producer = Producer(own.cluster)
            await own.run(producer.prepare(topic))
            producer.send_values(topic, [b"%d" % number for number in range(RECORDS)], partition=0)
            await own.wait(producer.flush())
            consumer = Consumer(own.cluster)
            await own.run(consumer.assign({TopicPartition(topic, 0): BEGINNING}))
            values: list[bytes] = []
            while len(values) < RECORDS:
                await asyncio.wait_for(own.wait(consumer.arrival()), 30)
                values += [record.value or b"" for fetched in consumer.poll() for record in fetched.records()]
            consumer.close()
            return values

    assert asyncio.run(main()) == [b"%d" % number for number in range(RECORDS)]
