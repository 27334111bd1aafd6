"""Transactions as applications use them: all or nothing for a read_committed consumer."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import confluent_kafka
import pytest

from quire.testing import Proxy, WireConnection
from tests.wire.clients import Confluent, Message, eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.group_members import ConfluentMember, member, wait_until_shared_out
from tests.wire.raw_offsets import commit, committed
from tests.wire.raw_transactions import transaction_state
from tests.wire.readers import COMMITTED, READERS, UNCOMMITTED, read_confluent
from tests.wire.transactional_producers import PRODUCERS, transactional


@pytest.fixture(params=PRODUCERS)
def producer(bootstrap: str, new_transactional_id: NewName, request: pytest.FixtureRequest) -> Iterator[Any]:
    with transactional(request.param, bootstrap, new_transactional_id()) as made:
        yield made


def reads(read: Any, bootstrap: str, topic: str, expected: list[bytes], partition: int = 0) -> bool:
    """Whether this client reads exactly these records with read_committed."""
    return bool(read(bootstrap, topic, COMMITTED, partition) == expected)


def has_received(member: ConfluentMember, count: int) -> bool:
    return len(member.received) == count


def test_a_committed_transaction_is_read_and_an_aborted_one_is_not(
    bootstrap: str, make_topic: MakeTopic, producer: Any
) -> None:
    topic = make_topic()
    for number in range(6):
        producer.begin()
        producer.send(topic, b"%d first" % number)
        producer.send(topic, b"%d second" % number)
        producer.flush()
        if number % 2:
            producer.abort()
        else:
            producer.commit()
    kept = [b"%d %s" % (number, word) for number in (0, 2, 4) for word in (b"first", b"second")]
    for read in READERS.values():
        assert read(bootstrap, topic) == kept
        assert len(read(bootstrap, topic, UNCOMMITTED)) == 12


def test_read_uncommitted_reads_an_open_transaction(bootstrap: str, make_topic: MakeTopic, producer: Any) -> None:
    topic = make_topic()
    Confluent().produce(bootstrap, topic, [Message(b"before")])
    producer.begin()
    producer.send(topic, b"open")
    producer.flush()
    Confluent().produce(bootstrap, topic, [Message(b"after")])
    for read in READERS.values():
        assert read(bootstrap, topic) == [b"before"]
        assert read(bootstrap, topic, UNCOMMITTED) == [b"before", b"open", b"after"]
    producer.commit()
    for read in READERS.values():
        eventually(partial(reads, read, bootstrap, topic, [b"before", b"open", b"after"]))


def test_a_transaction_covers_several_partitions_and_topics(
    bootstrap: str, make_topic: MakeTopic, producer: Any
) -> None:
    first, second = make_topic(2), make_topic(1)
    topic_partitions = [(first, 0), (first, 1), (second, 0)]
    for end, value in ((producer.abort, b"aborted"), (producer.commit, b"committed")):
        producer.begin()
        for topic, partition in topic_partitions:
            producer.send(topic, value, partition)
        producer.flush()
        assert all(
            read_confluent(bootstrap, topic, COMMITTED, partition) == [] for topic, partition in topic_partitions
        )
        end()
    for topic, partition in topic_partitions:
        eventually(partial(reads, read_confluent, bootstrap, topic, [b"committed"], partition))


def test_an_empty_transaction_may_be_committed_or_aborted(producer: Any) -> None:
    for end in (producer.commit, producer.abort, producer.commit):
        producer.begin()
        end()


def test_offsets_are_committed_with_the_transaction(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Any
) -> None:
    source, sink, group = make_topic(2), make_topic(), new_group()
    commit(connection, group, source, 1)
    producer.begin()
    producer.send(sink, b"aborted")
    producer.send_offsets(group, {(source, 0): 5})
    producer.abort()
    eventually(lambda: committed(connection, group, source, require_stable=True).committed_offset == 1)
    producer.begin()
    producer.send(sink, b"committed")
    producer.send_offsets(group, {(source, 0): 7, (source, 1): 3})
    producer.commit()
    eventually(lambda: committed(connection, group, source, require_stable=True).committed_offset == 7)
    eventually(lambda: committed(connection, group, source, 1, require_stable=True).committed_offset == 3)
    assert read_confluent(bootstrap, sink) == [b"committed"]


def test_offsets_alone_make_a_transaction(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, producer: Any
) -> None:
    source, group = make_topic(), new_group()
    producer.begin()
    producer.send_offsets(group, {(source, 0): 5})
    producer.commit()
    eventually(lambda: committed(connection, group, source, require_stable=True).committed_offset == 5)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consume_transform_and_produce_in_one_transaction(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName, new_transactional_id: NewName, protocol: str
) -> None:
    """A copier stops half way, and another one starts over: each record is copied once."""
    source, sink, group, transactional_id = make_topic(), make_topic(), new_group(), new_transactional_id()
    Confluent().produce(bootstrap, source, [Message(b"%d" % n) for n in range(20)])
    settings = {"group.protocol": protocol, "isolation.level": COMMITTED}
    for gives_up in (True, False):
        with (
            transactional("confluent-kafka", bootstrap, transactional_id) as producer,
            member(bootstrap, group, [source], **settings) as copier,
        ):
            eventually(partial(has_received, copier, 20))
            producer.begin()
            for got in copier.received:
                producer.send(sink, b"copy of " + got.value)
            if gives_up:
                producer.flush()
                continue
            send_offsets(producer, copier, {(source, 0): 20})
            producer.commit()
    eventually(lambda: read_confluent(bootstrap, sink) == [b"copy of %d" % n for n in range(20)])
    with member(bootstrap, group, [source], **settings) as idle:
        wait_until_shared_out([idle], source, 1)
        Confluent().produce(bootstrap, source, [Message(b"new")])
        eventually(lambda: idle.values() == [b"new"])


def send_offsets(producer: Any, copier: ConfluentMember, offsets: dict[tuple[str, int], int]) -> None:
    copier.do(lambda consumer: producer.send_offsets_of(consumer, offsets))


def test_a_large_transaction_of_many_batches_is_read_whole(
    bootstrap: str, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic(3)
    settings = {"batch.num.messages": 20, "linger.ms": 1}
    with transactional("confluent-kafka", bootstrap, new_transactional_id(), **settings) as producer:
        for end in (producer.abort, producer.commit):
            producer.begin()
            for number in range(3000):
                producer.send(topic, b"%d" % number, number % 3)
            producer.flush()
            end()
    for partition in range(3):
        expected = [b"%d" % number for number in range(partition, 3000, 3)]
        eventually(partial(reads, read_confluent, bootstrap, topic, expected, partition))


@pytest.mark.parametrize("api", ["Produce", "EndTxn", "InitProducerId", "TxnOffsetCommit"])
def test_a_lost_answer_leaves_the_transaction_whole(
    bootstrap: str,
    connection: WireConnection,
    make_topic: MakeTopic,
    new_group: NewName,
    new_transactional_id: NewName,
    api: str,
) -> None:
    """The request was carried out, and the producer does not know: it retries."""
    source, sink, group = make_topic(), make_topic(), new_group()
    with Proxy(bootstrap) as proxy:
        if api == "InitProducerId":
            proxy.lose_answers(api, 1)
        quick = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}
        with transactional("confluent-kafka", proxy.address, new_transactional_id(), **quick) as producer:
            for number in range(3):
                producer.begin()
                if api != "InitProducerId" and number == 1:
                    proxy.lose_answers(api, 1)
                producer.send(sink, b"%d" % number)
                producer.send_offsets(group, {(source, 0): number + 1})
                producer.commit()
        assert proxy.lost[api] == 1
    eventually(lambda: read_confluent(bootstrap, sink) == [b"0", b"1", b"2"])
    eventually(lambda: committed(connection, group, source, require_stable=True).committed_offset == 3)


def test_the_commit_of_a_producer_succeeds_after_it_gave_up_a_batch_that_was_written(
    bootstrap: str, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    """librdkafka uses the sequence numbers of a batch that it has given up again in the next transaction."""
    topic, kept = make_topic(), list[bytes]()
    lost_connections: list[Any] = []
    with Proxy(bootstrap) as proxy:
        settings = {"retry.backoff.ms": 5000, "retry.backoff.max.ms": 5000, "error_cb": lost_connections.append}
        with transactional("confluent-kafka", proxy.address, new_transactional_id(), **settings) as producer:
            producer.begin()
            producer.send(topic, b"0")
            producer.commit()
            proxy.lose_answers("Produce", 1)
            producer.begin()
            producer.send(topic, b"given up")
            eventually(lambda: producer.producer.poll(0.01) is not None and bool(lost_connections))
            producer.abort()
            for number in range(1, 4):
                producer.begin()
                producer.send(topic, b"%d" % number)
                try:
                    producer.commit()
                    kept.append(b"%d" % number)
                except confluent_kafka.KafkaException as error:
                    assert error.args[0].txn_requires_abort()
                    producer.abort()
    assert kept == [b"2", b"3"], "one abort, and a new epoch for the next"
    eventually(lambda: read_confluent(bootstrap, topic) == [b"0", *kept])


def test_a_transactional_id_is_listed_as_what_it_is(
    connection: WireConnection, bootstrap: str, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic, transactional_id = make_topic(), new_transactional_id()
    with transactional("confluent-kafka", bootstrap, transactional_id) as producer:
        assert transaction_state(connection, transactional_id) == "Empty"
        producer.begin()
        producer.send(topic, b"x")
        producer.flush()
        assert transaction_state(connection, transactional_id) == "Ongoing"
        producer.commit()
        eventually(lambda: transaction_state(connection, transactional_id) == "CompleteCommit")
