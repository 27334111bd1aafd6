"""Both kinds of timestamps, and finding records by time."""

import time

import pytest

from tests.wire.clients import Client, Message
from tests.wire.conftest import MakeTopic

LONG_AGO_MS = 1_500_000_000_000


def test_create_time_is_the_producers(bootstrap: str, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic()
    stamps = [LONG_AGO_MS, LONG_AGO_MS + 5, LONG_AGO_MS + 1]
    client.produce(bootstrap, topic, [Message(b"v", timestamp_ms=stamp) for stamp in stamps])
    received = client.consume(bootstrap, topic, 3)
    assert [(record.timestamp_ms, record.timestamp_type) for record in received] == [(stamp, 0) for stamp in stamps]


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_log_append_time_is_the_brokers(
    bootstrap: str, make_topic: MakeTopic, client: Client, compression: str
) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    messages = [Message(b"v", timestamp_ms=LONG_AGO_MS + n) for n in range(3)]
    client.produce(bootstrap, topic, messages, compression=compression)
    after_ms = int(time.time() * 1000)
    received = client.consume(bootstrap, topic, 3)
    assert [record.timestamp_type for record in received] == [1, 1, 1]
    assert all(before_ms <= record.timestamp_ms <= after_ms for record in received)


def test_a_time_finds_the_first_record_that_is_not_older(bootstrap: str, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic()
    for offset, timestamp_ms in enumerate([1000, 2000, 1500, 3000]):
        sent = [Message(b"%d" % offset, timestamp_ms=LONG_AGO_MS + timestamp_ms)]
        client.produce(bootstrap, topic, sent)
    found = {
        asked_ms: client.offset_at_time(bootstrap, topic, LONG_AGO_MS + asked_ms)
        for asked_ms in (0, 1000, 1001, 2000, 2001, 3000)
    }
    assert found == {0: 0, 1000: 0, 1001: 1, 2000: 1, 2001: 3, 3000: 3}
    assert client.offset_at_time(bootstrap, topic, LONG_AGO_MS + 3001) is None


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_time_finds_a_record_inside_a_batch(
    bootstrap: str, make_topic: MakeTopic, client: Client, compression: str
) -> None:
    topic = make_topic()
    messages = [Message(b"%d" % n, timestamp_ms=LONG_AGO_MS + n * 10) for n in range(100)]
    client.produce(bootstrap, topic, messages, compression=compression)
    assert client.offset_at_time(bootstrap, topic, LONG_AGO_MS + 555) == 56
    assert client.offset_at_time(bootstrap, topic, LONG_AGO_MS + 560) == 56


def test_an_empty_topic_has_no_record_at_any_time(bootstrap: str, make_topic: MakeTopic, client: Client) -> None:
    assert client.offset_at_time(bootstrap, make_topic(), LONG_AGO_MS) is None
