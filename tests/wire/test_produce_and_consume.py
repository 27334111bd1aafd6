"""Records are read as they were written, through every client."""

import pytest

from tests.wire.clients import CLIENTS, TEN_MEGABYTES, Client, Confluent, Message
from tests.wire.conftest import MakeTopic

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def test_records_are_read_in_order_with_the_offsets_they_were_given(
    bootstrap: str, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic()
    messages = [Message(b"value %d" % n, key=b"key %d" % n) for n in range(500)]
    assert client.produce(bootstrap, topic, messages) == list(range(500))

    received = client.consume(bootstrap, topic, 500)

    assert [record.offset for record in received] == list(range(500))
    assert [(record.key, record.value) for record in received] == [(m.key, m.value) for m in messages]


@pytest.mark.parametrize("compression", CODECS)
def test_every_compression_is_taken_and_given_back(
    bootstrap: str, make_topic: MakeTopic, client: Client, compression: str
) -> None:
    topic = make_topic()
    messages = [Message(b"compressible " * 40 + b"%d" % n, key=b"%d" % n) for n in range(200)]
    client.produce(bootstrap, topic, messages, compression=compression)
    received = client.consume(bootstrap, topic, 200)
    assert [record.content for record in received] == [(m.key, m.value, []) for m in messages]


@pytest.mark.parametrize("compression", CODECS)
def test_a_consumer_starts_in_the_middle_of_a_batch(
    bootstrap: str, make_topic: MakeTopic, client: Client, compression: str
) -> None:
    topic = make_topic()
    client.produce(bootstrap, topic, [Message(b"%d" % n) for n in range(100)], compression=compression)
    received = client.consume(bootstrap, topic, 43, offset=57)
    assert [record.value for record in received] == [b"%d" % n for n in range(57, 100)]


def test_headers_null_keys_and_null_values_are_kept_apart_from_empty_ones(
    bootstrap: str, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic()
    messages = [
        Message(b"value", key=None),
        Message(None, key=b"tombstone"),
        Message(b"", key=b""),
        Message(b"with headers", headers=[("a", b"1"), ("a", b"2"), ("empty", b""), ("ünïcode", "é".encode())]),
    ]
    client.produce(bootstrap, topic, messages)
    received = client.consume(bootstrap, topic, len(messages))
    assert [record.content for record in received] == [(m.key, m.value, m.headers) for m in messages]


def test_a_record_may_be_nothing_but_an_offset(bootstrap: str, make_topic: MakeTopic) -> None:
    """The Python clients refuse to send one, but they can read it."""
    topic = make_topic()
    Confluent().produce(bootstrap, topic, [Message(None, key=None)])
    for reader in CLIENTS:
        assert [record.content for record in reader.consume(bootstrap, topic, 1)] == [(None, None, [])]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement(bootstrap: str, make_topic: MakeTopic, client: Client, acks: str) -> None:
    topic = make_topic()
    client.produce(bootstrap, topic, [Message(b"%d" % n) for n in range(20)], acks=acks)
    received = client.consume(bootstrap, topic, 20)
    assert [record.value for record in received] == [b"%d" % n for n in range(20)]


def test_idempotent_producers_are_served(bootstrap: str, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic()
    offsets = client.produce(bootstrap, topic, [Message(b"%d" % n) for n in range(300)], idempotent=True)
    assert offsets == list(range(300))
    received = client.consume(bootstrap, topic, 300)
    assert [record.value for record in received] == [b"%d" % n for n in range(300)]


def test_ten_megabyte_messages_pass_when_the_topic_allows_them(
    bootstrap: str, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic(max_message_bytes=str(TEN_MEGABYTES + 10_000))
    value = bytes(range(256)) * (TEN_MEGABYTES // 256)
    client.produce(bootstrap, topic, [Message(b"before"), Message(value), Message(b"after")])
    received = client.consume(bootstrap, topic, 3)
    assert [len(record.value or b"") for record in received] == [6, TEN_MEGABYTES, 5]
    assert received[1].value == value


def test_a_message_above_the_topics_limit_is_refused_and_the_next_one_taken(
    bootstrap: str, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic(max_message_bytes="5000")
    with pytest.raises(Exception, match=r"(?i)MSG_SIZE_TOO_LARGE|MessageSizeTooLarge|message.*(too large|larger)"):
        client.produce(bootstrap, topic, [Message(b"x" * 6000)])
    assert client.produce(bootstrap, topic, [Message(b"small")]) == [0]


def test_partitions_are_apart(bootstrap: str, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic(partitions=3)
    for partition in range(3):
        sent = [Message(b"%d" % partition)] * (partition + 1)
        assert client.produce(bootstrap, topic, sent, partition=partition) == list(range(partition + 1))
    for partition in range(3):
        received = client.consume(bootstrap, topic, partition + 1, partition=partition)
        assert {record.value for record in received} == {b"%d" % partition}


def test_a_topic_that_is_compressed_by_the_broker_gives_back_the_same_records(
    bootstrap: str, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic(compression_type="lz4")
    messages = [
        Message(b"value %d" % n, key=b"k", headers=[("h", b"%d" % n)], timestamp_ms=1_700_000_000_000 + n)
        for n in range(50)
    ]
    client.produce(bootstrap, topic, messages, compression="gzip")
    received = client.consume(bootstrap, topic, 50)
    assert [record.content for record in received] == [(m.key, m.value, m.headers) for m in messages]
    assert [record.timestamp_ms for record in received] == [m.timestamp_ms for m in messages]


def test_one_clients_records_are_read_by_every_other(bootstrap: str, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic()
    messages = [Message(b"%d" % n, key=None, headers=[("n", b"%d" % n)]) for n in range(10)]
    client.produce(bootstrap, topic, messages, compression="snappy")
    for reader in CLIENTS:
        received = reader.consume(bootstrap, topic, 10)
        assert [record.content for record in received] == [(m.key, m.value, m.headers) for m in messages], reader.name
