"""Two producers with one transactional id, transactions that take too long, and restarts after a crash."""

import contextlib
from collections.abc import Iterator
from typing import Any

import aiokafka.errors
import kafka.errors
import pytest
from confluent_kafka import KafkaError, KafkaException

from quire.testing import WireConnection
from tests.wire.clients import OTHER_BROKER, eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw_transactions import transaction_state
from tests.wire.readers import read_confluent
from tests.wire.transactional_producers import PRODUCERS, transactional

ERRORS = (KafkaException, kafka.errors.KafkaError, aiokafka.errors.KafkaError)


@contextlib.contextmanager
def fenced(client: str) -> Iterator[None]:
    """The block must raise this client's error for a producer that was replaced."""
    if client == "confluent-kafka":
        with pytest.raises(KafkaException) as told:
            yield
        assert told.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
        assert told.value.args[0].fatal()
    elif client == "kafka-python":
        with pytest.raises(kafka.errors.ProducerFencedError):
            yield
    else:
        with pytest.raises(aiokafka.errors.ProducerFenced):
            yield


def write(producer: Any, topic: str, value: bytes) -> None:
    producer.begin()
    producer.send(topic, value)
    producer.flush()


@pytest.mark.parametrize("client", PRODUCERS)
def test_a_second_producer_of_the_same_id_fences_the_first(
    bootstrap: str, make_topic: MakeTopic, new_transactional_id: NewName, client: str
) -> None:
    topic, transactional_id = make_topic(), new_transactional_id()
    with transactional(client, bootstrap, transactional_id) as first:
        write(first, topic, b"of the first")
        with transactional(client, bootstrap, transactional_id) as second:
            write(second, topic, b"of the second")
            with fenced(client):
                first.commit()
            second.commit()
    eventually(lambda: read_confluent(bootstrap, topic) == [b"of the second"])


@pytest.mark.parametrize("client", PRODUCERS)
def test_a_fenced_producer_cannot_begin_again(
    bootstrap: str, make_topic: MakeTopic, new_transactional_id: NewName, client: str
) -> None:
    topic, transactional_id = make_topic(), new_transactional_id()
    with transactional(client, bootstrap, transactional_id) as first:
        write(first, topic, b"committed")
        first.commit()
        with transactional(client, bootstrap, transactional_id) as second:
            with fenced(client):
                write(first, topic, b"of a zombie")
                first.commit()
            write(second, topic, b"of the second")
            second.commit()
    eventually(lambda: read_confluent(bootstrap, topic) == [b"committed", b"of the second"])


@pytest.mark.parametrize("client", PRODUCERS)
def test_a_producer_that_restarts_after_a_crash_aborts_its_open_transaction(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, client: str
) -> None:
    topic, transactional_id = make_topic(), new_transactional_id()
    crashed = PRODUCERS[client](bootstrap, transactional_id)
    write(crashed, topic, b"left behind")
    with transactional(client, bootstrap, transactional_id) as producer:
        assert transaction_state(connection, transactional_id) == "Empty"
        write(producer, topic, b"after the crash")
        producer.commit()
    eventually(lambda: read_confluent(bootstrap, topic) == [b"after the crash"])
    with contextlib.suppress(Exception):
        crashed.close()


@pytest.mark.parametrize("client", PRODUCERS)
def test_a_transaction_that_takes_too_long_is_aborted(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, client: str
) -> None:
    topic, transactional_id = make_topic(), new_transactional_id()
    with transactional(client, bootstrap, transactional_id, timeout_ms=3000) as slow:
        write(slow, topic, b"too slow")
        eventually(lambda: transaction_state(connection, transactional_id) == "CompleteAbort")
        with fenced(client) if OTHER_BROKER is None else pytest.raises(ERRORS):
            slow.commit()
    with transactional(client, bootstrap, transactional_id) as producer:
        write(producer, topic, b"in time")
        producer.commit()
    eventually(lambda: read_confluent(bootstrap, topic) == [b"in time"])


def test_ten_producers_fight_for_one_id_and_what_they_commit_is_whole(
    bootstrap: str, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic, transactional_id = make_topic(2), new_transactional_id()
    acknowledged = []
    with contextlib.ExitStack() as stack:
        producers: list[Any] = []
        for number in range(10):
            producer = stack.enter_context(transactional("confluent-kafka", bootstrap, transactional_id))
            producers.append(producer)
            for each in (producers[number // 2], producer):
                value = b"%d" % number if each is producer else b"zombie"
                try:
                    each.begin()
                    each.send(topic, value, 0)
                    each.send(topic, value, 1)
                    each.commit()
                    acknowledged.append(value)
                except KafkaException:
                    assert each is not producer, "the newest is never fenced"
    eventually(lambda: read_confluent(bootstrap, topic) == acknowledged)
    assert read_confluent(bootstrap, topic, partition=1) == acknowledged
    assert b"zombie" not in acknowledged[1:]
