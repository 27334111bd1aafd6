"""What `quire produce` does with records that a broker does not acknowledge."""

import os
import selectors
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from quire.cli.records.delivery import deliver
from quire.client.producer import Producer
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure
from quire.console.stopping import Stop
from quire.testing import Cluster
from tests.cli.command import quire


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@contextmanager
def stoppable() -> Iterator[Stop]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield Stop()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_waiting_for_records_after_the_input_has_ended(
    cluster: Cluster, number: int, code: int
) -> None:
    topic = cluster.create_topic()
    with (
        stoppable() as stop,
        stop.wakes() as woken,
        BlockingClient(cluster.bootstrap_servers, request_timeout_ms=60_000) as client,
    ):
        producer = Producer(client.cluster)
        client.run(producer.prepare(topic))
        client.loop.watch(woken, selectors.EVENT_READ, lambda _: client.loop.watch(woken, 0, lambda _: None))
        cluster.pause()
        producer.send_values(topic, [b"one", b"two"])
        client.loop.call_later(1, lambda: os.kill(os.getpid(), number))
        before_ms = client.loop.monotonic_ms()
        with pytest.raises(Failure) as ended:
            deliver(client.loop, producer, stop)
        assert client.loop.monotonic_ms() - before_ms < 10_000
        cluster.resume()
    assert ended.value.exit_code == code
    assert ended.value.message.startswith("2 records were not delivered and 0 were: the command was stopped")


def test_a_record_takes_no_longer_than_the_time_out(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.delay("Produce", 60_000)
    result = quire("produce", topic, "--timeout", "2", servers=cluster.bootstrap_servers, stdin=b"one\n")
    cluster.clear_faults()
    assert result.returncode == 3
    assert "1 record was not delivered and 0 were: not delivered within 2 s" in result.stderr.decode()
