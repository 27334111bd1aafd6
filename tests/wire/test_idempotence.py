"""No record is duplicated, lost or reordered when acknowledgements are lost."""

from typing import Any

import confluent_kafka

from quire.testing import Proxy, WireConnection
from tests.wire.clients import WAIT_S, Client, Confluent, Message
from tests.wire.conftest import MakeTopic
from tests.wire.raw import list_offset

IN_FLIGHT = 5
ROUNDS = 10
PER_ROUND = 20


def read_all(bootstrap: str, topic: str) -> list[bytes | None]:
    with WireConnection(bootstrap) as connection:
        end = list_offset(connection, topic, -1).offset
    return [record.value for record in Confluent().consume(bootstrap, topic, end)]


class LossyProducer:
    """librdkafka behind a proxy, with exactly five unacknowledged batches in flight when the acknowledgements are
    lost."""

    def __init__(self, proxy: Proxy, topic: str, *, idempotent: bool) -> None:
        self.proxy = proxy
        self.topic = topic
        self.offsets: list[int] = []
        self.errors: list[Any] = []
        self.sent: list[bytes] = []
        self.producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": proxy.address,
                "enable.idempotence": idempotent,
                "max.in.flight.requests.per.connection": IN_FLIGHT,
                "linger.ms": 0,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 20,
                "retry.backoff.ms": 10,
                "log_level": 0,
            }
        )

    def send(self, count: int) -> None:
        for _ in range(count):
            value = b"%05d" % len(self.sent)
            self.sent.append(value)
            self.producer.produce(self.topic, value, partition=0, on_delivery=self._delivered)

    def flush(self) -> None:
        assert self.producer.flush(WAIT_S) == 0
        assert not self.errors, self.errors

    def lose_five_in_flight(self) -> None:
        proxy = self.proxy
        first, lost = proxy.requests["Produce"], proxy.lost["Produce"]
        proxy.lose_answers("Produce", IN_FLIGHT)
        for request in range(1, IN_FLIGHT + 1):
            self.send(1)
            wanted = first + request
            proxy.wait_until(lambda it: it.requests["Produce"] >= wanted)  # noqa: B023 - called before the next round
        proxy.wait_until(lambda it: it.lost["Produce"] == lost + IN_FLIGHT)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.offsets.append(message.offset())


def test_five_lost_acknowledgements_at_a_time_leave_no_duplicate_and_no_gap(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with Proxy(bootstrap) as proxy:
        producer = LossyProducer(proxy, topic, idempotent=True)
        for _ in range(ROUNDS):
            producer.send(PER_ROUND)
            producer.flush()
            producer.lose_five_in_flight()
        producer.send(PER_ROUND)
        producer.flush()
        assert proxy.lost["Produce"] == ROUNDS * IN_FLIGHT
    assert producer.offsets == list(range(ROUNDS * (PER_ROUND + IN_FLIGHT) + PER_ROUND))
    assert read_all(bootstrap, topic) == producer.sent


def test_without_idempotence_the_same_loss_leaves_duplicates(bootstrap: str, make_topic: MakeTopic) -> None:
    """A control: the proxy does drop acknowledgements of batches that were appended."""
    topic = make_topic()
    with Proxy(bootstrap) as proxy:
        producer = LossyProducer(proxy, topic, idempotent=False)
        producer.lose_five_in_flight()
        producer.flush()
    stored = read_all(bootstrap, topic)
    assert len(stored) == 2 * IN_FLIGHT
    assert sorted(value or b"" for value in stored) == sorted(producer.sent * 2)


def test_every_client_survives_a_lost_acknowledgement(bootstrap: str, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic()
    with Proxy(bootstrap) as proxy:
        proxy.lose_answers("Produce", 1)
        offsets = client.produce(proxy.address, topic, [Message(b"%d" % n) for n in range(50)], idempotent=True)
        assert proxy.lost["Produce"] == 1
    assert offsets == list(range(50))
    assert read_all(bootstrap, topic) == [b"%d" % n for n in range(50)]
