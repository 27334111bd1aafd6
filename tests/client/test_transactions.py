"""Transactions of the client's own producer against a real node, in both transaction protocols."""

from collections.abc import Iterator

import pytest

from quire.client.admin.topics import NewTopic, create_topics
from quire.client.admin.transactions import describe_transactions
from quire.client.consumer import BEGINNING, Consumer, ConsumerConfig
from quire.client.errors import ClientError
from quire.client.group_offsets import OffsetAndMetadata, fetch_offsets
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError, ErrorCode
from quire.testing import Cluster, Proxy

PARTITIONS = 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(params=[1, 2], ids=["protocol-1", "protocol-2"])
def client(
    cluster: Cluster, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BlockingClient]:
    """A client that uses one of the transaction protocols; a node answers both."""
    cluster.clear_faults()
    with BlockingClient(cluster.bootstrap_servers) as client:
        if request.param == 1:
            monkeypatch.setattr(client.cluster, "feature_level", lambda name: 1)
        yield client


@pytest.fixture
def topic(client: BlockingClient, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    client.run(create_topics(client.cluster, [NewTopic(name, PARTITIONS, 1)]))
    return name


def producer_of(client: BlockingClient, topic: str, **settings: object) -> Producer:
    config = ProducerConfig(transactional_id=f"id-{topic}", linger_ms=0, **settings)  # type: ignore[arg-type]
    producer = Producer(client.cluster, config)
    client.run(producer.init_transactions())
    client.run(producer.prepare(topic))
    return producer


def write(producer: Producer, topic: str, *values: bytes) -> None:
    for index, value in enumerate(values):
        producer.send(topic, value, partition=index % PARTITIONS)


def committed(client: BlockingClient, topic: str) -> list[bytes]:
    """The records that a read_committed reader sees now."""
    topic_partitions = {TopicPartition(topic, index): BEGINNING for index in range(PARTITIONS)}
    ends = client.run(list_offsets(client.cluster, dict.fromkeys(topic_partitions, LATEST), isolation_level=1))
    consumer = Consumer(client.cluster, ConsumerConfig(read_committed=True, max_wait_ms=50))
    client.run(consumer.assign(topic_partitions))
    values: list[bytes] = []
    while any(
        consumer.positions[topic_partition] < ends[topic_partition].offset for topic_partition in topic_partitions
    ):
        client.loop.run_until(consumer.arrival(), timeout_ms=30_000)
        values += [record.value or b"" for fetched in consumer.poll() for record in fetched.records()]
    consumer.close()
    return sorted(values)


def test_committed_records_are_read_and_aborted_ones_are_not(client: BlockingClient, topic: str) -> None:
    producer = producer_of(client, topic)
    for number in range(6):
        producer.begin()
        write(producer, topic, b"%d-a" % number, b"%d-b" % number)
        if number % 3 == 1:
            client.loop.run_until(producer.flush(), timeout_ms=30_000)
            client.run(producer.abort())
        else:
            client.run(producer.commit())
    assert committed(client, topic) == [b"%d-%s" % (number, half) for number in (0, 2, 3, 5) for half in (b"a", b"b")]


def test_an_abort_gives_up_what_was_not_sent(client: BlockingClient, topic: str) -> None:
    producer = producer_of(client, topic)
    producer.begin()
    receipt = producer.send(topic, b"never", partition=0)
    client.run(producer.abort())
    assert receipt.delivery.error is not None
    producer.begin()
    write(producer, topic, b"later")
    client.run(producer.commit())
    assert committed(client, topic) == [b"later"]


def test_an_empty_transaction_sends_no_request(client: BlockingClient, cluster: Cluster, topic: str) -> None:
    producer = producer_of(client, topic)
    cluster.fail_next("EndTxn", "INVALID_TXN_STATE", 2, required=False)
    producer.begin()
    client.run(producer.commit())
    producer.begin()
    client.run(producer.abort())
    cluster.clear_faults()


def test_offsets_become_visible_at_the_commit_and_are_dropped_at_the_abort(client: BlockingClient, topic: str) -> None:
    producer = producer_of(client, topic)
    group, topic_partition = f"group-{topic}", TopicPartition(topic, 0)
    producer.begin()
    write(producer, topic, b"first")
    client.run(producer.send_offsets(group, {topic_partition: OffsetAndMetadata(7, "seven")}))
    assert client.run(fetch_offsets(client.cluster, group, [topic_partition], require_stable=False)) == {}
    client.run(producer.commit())
    assert client.run(fetch_offsets(client.cluster, group, [topic_partition])) == {
        topic_partition: OffsetAndMetadata(7, "seven")
    }
    producer.begin()
    client.run(producer.send_offsets(group, {topic_partition: OffsetAndMetadata(8, "eight")}))
    client.run(producer.abort())
    assert client.run(fetch_offsets(client.cluster, group)) == {topic_partition: OffsetAndMetadata(7, "seven")}


def test_offsets_alone_make_a_transaction(client: BlockingClient, topic: str) -> None:
    producer = producer_of(client, topic)
    group, topic_partition = f"group-{topic}", TopicPartition(topic, 1)
    producer.begin()
    client.run(producer.send_offsets(group, {topic_partition: OffsetAndMetadata(3)}))
    client.run(producer.commit())
    assert client.run(fetch_offsets(client.cluster, group)) == {topic_partition: OffsetAndMetadata(3)}


def test_a_second_producer_of_the_id_undoes_and_fences_the_first(client: BlockingClient, topic: str) -> None:
    first = producer_of(client, topic)
    first.begin()
    write(first, topic, b"lost")
    client.loop.run_until(first.flush(), timeout_ms=30_000)
    second = producer_of(client, topic)
    second.begin()
    write(second, topic, b"kept")
    client.run(second.commit())
    with pytest.raises(ApiError) as caught:
        client.run(first.commit())
    assert caught.value.code == ErrorCode.PRODUCER_FENCED
    assert "taken over" in caught.value.message
    for refused in (first.begin, lambda: client.run(first.abort())):
        with pytest.raises(ApiError) as again:
            refused()
        assert again.value is caught.value
    assert committed(client, topic) == [b"kept"]


def test_a_fenced_producer_that_still_writes_learns_it_from_the_abort(client: BlockingClient, topic: str) -> None:
    first = producer_of(client, topic)
    first.begin()
    write(first, topic, b"lost")
    client.loop.run_until(first.flush(), timeout_ms=30_000)
    second = producer_of(client, topic)
    second.begin()
    write(second, topic, b"kept", b"kept")
    client.run(second.commit())
    write(first, topic, b"late")
    with pytest.raises(ApiError) as refused:
        client.run(first.commit())
    assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(ApiError) as caught:
        client.run(first.abort())
    assert caught.value.code == ErrorCode.PRODUCER_FENCED
    assert committed(client, topic) == [b"kept", b"kept"]


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("Produce", "NOT_LEADER_OR_FOLLOWER"),
        ("AddPartitionsToTxn", "CONCURRENT_TRANSACTIONS"),
        ("AddOffsetsToTxn", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("TxnOffsetCommit", "COORDINATOR_NOT_AVAILABLE"),
        ("EndTxn", "CONCURRENT_TRANSACTIONS"),
        ("EndTxn", "NOT_COORDINATOR"),
        ("InitProducerId", "CONCURRENT_TRANSACTIONS"),
    ],
)
def test_refusals_that_pass_cost_time_and_nothing_else(
    client: BlockingClient, cluster: Cluster, topic: str, api: str, error: str
) -> None:
    if api == "InitProducerId":
        cluster.fail_next(api, error, 2)
    producer = producer_of(client, topic)
    topic_partition = TopicPartition(topic, 0)
    for number in range(3):
        cluster.fail_next(api, error, 2, required=False)  # protocol 2 does not send each of them
        producer.begin()
        write(producer, topic, b"%d" % number)
        client.run(producer.send_offsets(f"group-{topic}", {topic_partition: OffsetAndMetadata(number)}))
        client.run(producer.commit())
        cluster.clear_faults()
    assert committed(client, topic) == [b"0", b"1", b"2"]
    assert client.run(fetch_offsets(client.cluster, f"group-{topic}"))[topic_partition].offset == 2


def test_a_record_that_fails_makes_the_commit_raise_and_leaves_only_the_abort(
    client: BlockingClient, cluster: Cluster, topic: str
) -> None:
    producer = producer_of(client, topic)
    producer.begin()
    write(producer, topic, b"good")
    client.loop.run_until(producer.flush(), timeout_ms=30_000)
    cluster.fail_next("Produce", "MESSAGE_TOO_LARGE")
    write(producer, topic, b"bad")
    with pytest.raises(ApiError) as caught:
        client.run(producer.commit())
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(ApiError) as again:
        producer.send(topic, b"too late", partition=0)
    assert again.value is caught.value
    client.run(producer.abort())
    producer.begin()
    write(producer, topic, b"next")
    client.run(producer.commit())
    assert committed(client, topic) == [b"next"]


def test_a_node_that_is_killed_loses_no_half_of_a_transaction(client: BlockingClient, topic: str) -> None:
    with Cluster() as mortal, BlockingClient(mortal.bootstrap_servers) as own:
        if client.cluster.feature_level("transaction.version") == 1:
            own.cluster.feature_level = client.cluster.feature_level  # type: ignore[method-assign]
        own.run(create_topics(own.cluster, [NewTopic(topic, PARTITIONS, 1)]))
        producer = producer_of(own, topic)
        for number in range(3):
            producer.begin()
            write(producer, topic, b"%d-a" % number, b"%d-b" % number)
            own.loop.run_until(producer.flush(), timeout_ms=30_000)
            mortal.kill()
            mortal.restart()
            own.run(producer.commit())
        assert committed(own, topic) == [b"%d-%s" % (number, half) for number in range(3) for half in (b"a", b"b")]


def test_an_open_transaction_hides_its_records(client: BlockingClient, topic: str) -> None:
    producer = producer_of(client, topic)
    producer.begin()
    write(producer, topic, b"open")
    client.loop.run_until(producer.flush(), timeout_ms=30_000)
    assert committed(client, topic) == []
    described = client.run(describe_transactions(client.cluster, [f"id-{topic}"]))[f"id-{topic}"]
    assert not isinstance(described, ApiError)
    assert described.partitions == [TopicPartition(topic, 0)]
    client.run(producer.commit())


def test_records_belong_to_transactions_and_transactions_to_an_id(client: BlockingClient, topic: str) -> None:
    producer = producer_of(client, topic)
    with pytest.raises(ClientError, match="call begin before you send records"):
        producer.send(topic, b"outside")
    with pytest.raises(ClientError, match="has no transactional id"):
        Producer(client.cluster).begin()
    with pytest.raises(ClientError, match="idempotent"):
        ProducerConfig(transactional_id="x", idempotent=False)


@pytest.mark.parametrize(
    "api", ["InitProducerId", "AddPartitionsToTxn", "Produce", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"]
)
@pytest.mark.parametrize("committing", [True, False], ids=["commit", "abort"])
def test_lost_answers_change_nothing_about_how_it_ends(
    client: BlockingClient, cluster: Cluster, topic: str, api: str, committing: bool
) -> None:
    topic_partition = TopicPartition(topic, 0)
    with Proxy(cluster.bootstrap_servers) as proxy, BlockingClient(proxy.address) as lossy:
        if client.cluster.feature_level("transaction.version") == 1:
            lossy.cluster.feature_level = client.cluster.feature_level  # type: ignore[method-assign]
        if api == "InitProducerId":
            proxy.lose_answers(api, 1)
        producer = producer_of(lossy, topic)
        for number in range(2):
            if api != "InitProducerId":
                proxy.lose_answers(api, 1)
            producer.begin()
            write(producer, topic, b"%d-a" % number, b"%d-b" % number)
            lossy.run(producer.send_offsets(f"group-{topic}", {topic_partition: OffsetAndMetadata(number)}))
            lossy.run(producer.commit() if committing else producer.abort())
        last = producer_of(lossy, topic)
        last.begin()
        write(last, topic, b"last")
        lossy.run(last.commit())
        producer.close()
    both = [b"%d-%s" % (number, half) for number in range(2) for half in (b"a", b"b")] if committing else []
    assert committed(client, topic) == [*both, b"last"]
    found = client.run(fetch_offsets(client.cluster, f"group-{topic}"))
    assert found == ({topic_partition: OffsetAndMetadata(1)} if committing else {})
