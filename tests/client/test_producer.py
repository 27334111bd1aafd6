import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.client.batch import Receipt
from quire.client.cluster import Cluster
from quire.client.errors import ClientError, TimedOutError
from quire.client.partitioner import partition_for_key
from quire.client.producer import Producer, ProducerConfig
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.metadata import MetadataRequest
from quire.protocol.messages.produce import ProduceRequest
from quire.protocol.records import HEADER_BYTES, Compression, Record, build_batch, read_header
from simulator.network import Conditions
from tests.client.model_cluster import ModelCluster

SMALL = ProducerConfig(batch_bytes=200, linger_ms=0)


def producer_for(model: ModelCluster, topic: str, config: ProducerConfig | None = None) -> Producer:
    producer = Producer(model.client(), config)
    model.run(producer.prepare(topic))
    return producer


def values(model: ModelCluster, topic: str) -> list[list[bytes | None]]:
    return [[record.value for record in partition.records()] for partition in model.topics[topic].partitions]


def produce_requests(model: ModelCluster) -> list[ProduceRequest]:
    return [request for _, request in model.requests if isinstance(request, ProduceRequest)]


def test_records_arrive_whole_and_receipts_say_where() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t")
    producer.send("t", b"one", key=b"k", headers=[("h", b"x"), ("n", None)], timestamp_ms=123)
    receipt = producer.send("t", None)
    model.wait(producer.flush())
    first, second = model.topics["t"].partitions[0].records()
    assert (first.key, first.value, first.headers, first.timestamp) == (b"k", b"one", [("h", b"x"), ("n", None)], 123)
    assert (second.key, second.value, second.headers) == (None, None, [])
    assert (receipt.delivered, receipt.partition, receipt.offset) == (True, 0, 1)


def test_records_produced_together_are_sent_together() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t")
    for number in range(100):
        producer.send("t", b"%d" % number)
    model.wait(producer.flush())
    assert len(model.topics["t"].partitions[0].batches) == 1


def test_a_record_alone_leaves_after_the_linger() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t", ProducerConfig(linger_ms=50))
    receipt = producer.send("t", b"alone")
    model.clock.run_for(40)
    assert not receipt.delivery.done.done
    model.clock.run_for(40)
    assert receipt.delivered


@settings(max_examples=50, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 500), min_size=1, max_size=60),
    batch_bytes=st.integers(100, 2000),
    bulk=st.booleans(),
)
def test_batches_keep_their_limit_unless_one_record_alone_breaks_it(
    sizes: list[int], batch_bytes: int, bulk: bool
) -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t", ProducerConfig(batch_bytes=batch_bytes))
    sent = [bytes([index % 256]) * size for index, size in enumerate(sizes)]
    if bulk:
        producer.send_values("t", sent)
    else:
        for value in sent:
            producer.send("t", value)
    model.wait(producer.flush())
    assert values(model, "t") == [sent]
    for batch in model.topics["t"].partitions[0].batches:
        assert len(batch) <= batch_bytes or read_header(batch, 0).record_count == 1
    assert producer.buffered_bytes == 0
    assert producer.delivered_records == len(sizes)


def test_keys_decide_the_partition_and_records_without_one_are_spread() -> None:
    model = ModelCluster(nodes=2)
    model.create("t", partitions=4)
    producer = producer_for(model, "t", SMALL)
    for number in range(40):
        producer.send("t", b"keyed", key=b"%d" % (number % 10))
        producer.send("t", b"plain")
    model.wait(producer.flush())
    for index, partition in enumerate(model.topics["t"].partitions):
        for record in partition.records():
            assert record.key is None or partition_for_key(record.key, 4) == index
    assert all(b"plain" in found for found in values(model, "t"))


def test_many_values_are_spread_over_partitions_batch_by_batch() -> None:
    model = ModelCluster()
    model.create("t", partitions=3)
    producer = producer_for(model, "t", SMALL)
    sent = [b"%d" % number for number in range(200)]
    producer.send_values("t", sent, headers=[("h", b"v")])
    model.wait(producer.flush())
    found = values(model, "t")
    assert all(found)
    assert sorted(value for part in found for value in part if value) == sorted(sent)
    assert model.topics["t"].partitions[0].records()[0].headers == [("h", b"v")]


def test_a_partition_that_does_not_exist_is_refused_at_once() -> None:
    model = ModelCluster()
    model.create("t", partitions=2)
    with pytest.raises(ClientError, match="0 to 1"):
        producer_for(model, "t").send("t", b"x", partition=2)


def test_an_unprepared_or_deleted_topic_is_refused_at_once() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t")
    with pytest.raises(ApiError, match="not prepared"):
        producer.send("other", b"x")
    del model.topics["t"]
    producer.send("t", b"lost")
    model.clock.run_for(1000)
    with pytest.raises(ApiError, match="does not exist, or was not prepared"):
        producer.send("t", b"x")


@pytest.mark.parametrize("compression", list(Compression))
def test_every_compression_arrives(compression: Compression) -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t", ProducerConfig(compression=compression))
    producer.send_values("t", [b"again and again"] * 50)
    model.wait(producer.flush())
    assert values(model, "t") == [[b"again and again"] * 50]
    assert read_header(model.topics["t"].partitions[0].batches[0], 0).compression == compression


def test_without_acknowledgements_nothing_is_waited_for() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t", ProducerConfig(acks=0, idempotent=False))
    receipt = producer.send("t", b"x")
    model.wait(producer.flush())
    assert receipt.delivered and receipt.offset == -1
    model.clock.run_for(10)
    assert values(model, "t") == [[b"x"]]


def test_acks_and_idempotence_must_go_together() -> None:
    with pytest.raises(ClientError, match="acks=all"):
        ProducerConfig(acks=1)
    with pytest.raises(ClientError, match="acks=7"):
        ProducerConfig(acks=7)


def test_a_topic_that_is_not_created_in_time_is_an_error() -> None:
    model = ModelCluster()
    producer = Producer(model.client(request_timeout_ms=2000))
    with pytest.raises(ApiError, match="cannot be written to"):
        model.run(producer.prepare("nowhere"))


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_ENOUGH_REPLICAS],
)
def test_refusals_that_pass_are_tried_again_until_they_do(code: ErrorCode) -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t")
    model.refuse("Produce", code, count=3)
    receipt = producer.send("t", b"x")
    model.wait(producer.flush())
    assert receipt.delivered
    assert len(produce_requests(model)) == 4


def test_a_leader_that_moves_is_followed() -> None:
    model = ModelCluster(nodes=2)
    model.create("t")
    producer = producer_for(model, "t")
    producer.send("t", b"before")
    model.wait(producer.flush())
    model.move("t", 0, leader=2)
    producer.send("t", b"after")
    model.wait(producer.flush())
    assert values(model, "t") == [[b"before", b"after"]]


def test_a_partition_without_a_leader_costs_few_metadata_requests_and_is_written_to_once_it_has_one() -> None:
    model = ModelCluster(nodes=2)
    model.create("t")
    producer = producer_for(model, "t")
    model.move("t", 0, leader=-1)
    producer.send("t", b"waits")
    flushed = producer.flush()
    before = len(model.requests)
    model.clock.run_for(10_000)
    asked = [request for _, request in model.requests[before:] if isinstance(request, MetadataRequest)]
    assert 5 < len(asked) < 20
    model.move("t", 0, leader=2)
    model.wait(flushed, limit_ms=3_000)
    assert values(model, "t") == [[b"waits"]]


def test_an_answer_lost_on_the_way_leaves_the_record_once() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t")
    model.carry_out_and_drop("Produce", count=2)
    receipt = producer.send("t", b"once")
    model.wait(producer.flush())
    assert values(model, "t") == [[b"once"]]
    assert receipt.offset == 0


def test_five_batches_in_flight_whose_answers_are_lost_stay_in_order_and_once() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t", SMALL)
    model.carry_out_and_drop("Produce", count=5)
    sent = [b"%04d" % number for number in range(100)]
    producer.send_values("t", sent)
    model.wait(producer.flush())
    assert values(model, "t") == [sent]


def test_a_record_that_the_broker_never_accepts_fails_alone_and_the_rest_continues_under_a_new_epoch() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t")
    producer.send("t", b"first")
    model.wait(producer.flush())
    model.refuse("Produce", ErrorCode.MESSAGE_TOO_LARGE)
    refused = producer.send("t", b"too large")
    model.wait(producer.flush())
    accepted = producer.send("t", b"last")
    model.wait(producer.flush())
    assert isinstance(refused.delivery.error, ApiError) and not refused.delivered
    assert accepted.delivered
    assert values(model, "t") == [[b"first", b"last"]]
    assert (producer.delivered_records, producer.failed_records) == (2, 1)
    last = read_header(model.topics["t"].partitions[0].batches[-1], 0)
    assert (last.producer_epoch, last.base_sequence) == (1, 0)


def test_batches_behind_one_that_is_given_up_are_delivered_in_order() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t", SMALL)
    model.refuse("Produce", ErrorCode.MESSAGE_TOO_LARGE)
    sent = [b"%04d" % number for number in range(60)]
    producer.send_values("t", sent)
    model.wait(producer.flush())
    (found,) = values(model, "t")
    assert 0 < producer.failed_records < 60
    assert found == sent[producer.failed_records :]


def test_a_producer_that_the_broker_forgot_continues_under_a_new_epoch() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t")
    model.refuse("Produce", ErrorCode.UNKNOWN_PRODUCER_ID)
    receipt = producer.send("t", b"x")
    model.wait(producer.flush())
    assert receipt.delivered
    assert read_header(model.topics["t"].partitions[0].batches[0], 0).producer_epoch == 1


def test_a_producer_id_that_is_not_available_yet_is_requested_again() -> None:
    model = ModelCluster()
    model.create("t")
    model.refuse("InitProducerId", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, count=3)
    producer = producer_for(model, "t")
    producer.send("t", b"x")
    model.wait(producer.flush())
    assert values(model, "t") == [[b"x"]]


def test_a_record_that_cannot_be_delivered_in_time_fails_with_the_reason() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t", ProducerConfig(delivery_timeout_ms=5000))
    model.refuse("Produce", ErrorCode.NOT_ENOUGH_REPLICAS, count=10_000)
    receipt = producer.send("t", b"x")
    model.wait(producer.flush(), limit_ms=10_000)
    assert isinstance(receipt.delivery.error, TimedOutError)
    assert "5 s" in str(producer.first_error)


def test_a_cluster_that_was_away_gets_everything_in_order() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t", SMALL)
    sent = [b"%04d" % number for number in range(50)]
    producer.send_values("t", sent[:25])
    model.clock.run_for(1)
    model.network.crash("node-1")
    producer.send_values("t", sent[25:])
    model.clock.run_for(5000)
    model.start(1)
    model.wait(producer.flush())
    assert values(model, "t") == [sent]


def test_flushing_with_nothing_on_the_way_is_done_at_once() -> None:
    model = ModelCluster()
    assert Producer(model.client()).flush().done


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_through_disconnects_moves_and_refusals_every_record_is_written_once_and_in_order(seed: int) -> None:
    """Connections break, leaders move and brokers refuse; nothing is lost, doubled or swapped."""
    model = ModelCluster(seed, nodes=3, conditions=Conditions(break_chance=0.03, slow_chance=0.05, slow_ms=200))
    model.create("t", partitions=3)
    cluster: Cluster = model.client(request_timeout_ms=2000)
    producer = Producer(cluster, ProducerConfig(batch_bytes=150, linger_ms=1, delivery_timeout_ms=3_600_000))
    chance = model.random.stream("events")
    _prepare(model, producer)
    receipts: list[tuple[int, Receipt]] = []
    for number in range(300):
        receipts.append((number, producer.send("t", b"%d" % number, partition=number % 3)))
        if chance.chance(0.1):
            model.clock.run_for(chance.between(1, 50))
        if chance.chance(0.03):
            model.move("t", chance.below(3), leader=1 + chance.below(3))
        if chance.chance(0.03):
            model.refuse("Produce", ErrorCode.NOT_ENOUGH_REPLICAS)
        if chance.chance(0.02):
            model.carry_out_and_drop("Produce")
    model.wait(producer.flush(), limit_ms=3_600_000)
    found = values(model, "t")
    assert producer.failed_records == 0
    for index, part in enumerate(found):
        assert [int(value) for value in part if value is not None] == list(range(index, 300, 3))
    for number, receipt in receipts:
        assert found[receipt.partition][receipt.offset] == b"%d" % number


def _prepare(model: ModelCluster, producer: Producer) -> None:
    while True:
        try:
            model.run(producer.prepare("t"))
            return
        except ClientError:
            continue


def encoded(*values: bytes) -> bytearray:
    """The records as in a batch, after room for its header."""
    batch = build_batch([Record(0, 0, None, value, []) for value in values])
    return bytearray(HEADER_BYTES) + batch[HEADER_BYTES:]


@pytest.mark.parametrize("compression", list(Compression))
def test_encoded_batches_stay_whole_and_in_line_with_other_records(compression: Compression) -> None:
    model = ModelCluster()
    model.create("t", partitions=2)
    producer = producer_for(model, "t", ProducerConfig(compression=compression))
    producer.send("t", b"before", partition=1)
    delivery = producer.send_encoded("t", 1, encoded(b"a", b"b" * 1000, b"c"), 3, 1234)
    producer.send("t", b"after", partition=1)
    model.wait(producer.flush())
    assert values(model, "t") == [[], [b"before", b"a", b"b" * 1000, b"c", b"after"]]
    assert (delivery.base_offset, delivery.count, delivery.error) == (1, 3, None)
    assert [record.timestamp for record in model.topics["t"].partitions[1].records()[1:4]] == [1234] * 3
    assert producer.buffered_bytes == 0
    assert producer.delivered_records == 5


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_encoded_batches_are_numbered_and_sent_again_like_others(compression: Compression) -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t", ProducerConfig(compression=compression))
    model.carry_out_and_drop("Produce")
    model.refuse("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, 2)
    for number in range(8):
        producer.send_encoded("t", 0, encoded(b"%d" % number), 1, 1)
    model.wait(producer.flush())
    assert values(model, "t") == [[b"%d" % number for number in range(8)]]


def test_an_encoded_batch_for_a_missing_partition_is_refused_at_once() -> None:
    model = ModelCluster()
    model.create("t")
    producer = producer_for(model, "t")
    with pytest.raises(ClientError, match="no partition 7"):
        producer.send_encoded("t", 7, encoded(b"x"), 1, 1)
    assert producer.flush().done
