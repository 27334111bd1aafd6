"""The helpers of `Cluster` for topics and records."""

import json
import threading

import pytest
from confluent_kafka import Consumer, Producer

from quire.client.errors import TimedOutError
from quire.testing import Cluster, ClusterError, records
from quire.testing.records import Record

PATIENCE_S = 50


def test_produced_records_are_read_back_with_all_their_parts(quire_cluster: Cluster) -> None:
    topic = quire_cluster.create_topic(partitions=3)
    written = quire_cluster.produce(topic, "räd", None, key="k", headers={"trace": "1", "none": None}, partition=2)
    written += quire_cluster.produce(topic, ("anna", b"3 books"), timestamp_ms=1234, partition=2)
    assert [record.offset for record in written] == [0, 1, 2]
    assert [(record.key, record.value) for record in written] == [
        (b"k", "räd".encode()),
        (b"k", None),
        (b"anna", b"3 books"),
    ]
    assert written[0].headers == [("trace", b"1"), ("none", None)]
    assert quire_cluster.read_all(topic) == written
    assert quire_cluster.read_all(topic, partition=2) == written
    assert quire_cluster.read_all(topic, partition=0) == []


def test_records_without_keys_are_spread_the_same_way_every_time(quire_cluster: Cluster) -> None:
    topic = quire_cluster.create_topic(partitions=2)
    quire_cluster.produce(topic, "a", "b", "c")
    assert [(record.partition, record.value) for record in quire_cluster.read_all(topic)] == [
        (0, b"a"),
        (0, b"c"),
        (1, b"b"),
    ]


def test_topics_have_settings_and_names_of_their_own(quire_cluster: Cluster) -> None:
    first = quire_cluster.create_topic(config={"max.message.bytes": 200})
    assert quire_cluster.create_topic("named-by-the-test") == "named-by-the-test" != first
    with pytest.raises(ClusterError, match="MESSAGE_TOO_LARGE"):
        quire_cluster.produce(first, b"x" * 1000)
    with pytest.raises(ClusterError, match="TOPIC_ALREADY_EXISTS"):
        quire_cluster.create_topic(first)


def test_helpers_meet_no_faults(quire_cluster: Cluster) -> None:
    topic = quire_cluster.create_topic()
    quire_cluster.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", required=False)
    quire_cluster.delay("Fetch", 600_000, required=False)
    quire_cluster.produce(topic, "one")
    assert [record.value for record in quire_cluster.read_all(topic)] == [b"one"]


def test_reading_waits_for_records_that_are_still_to_come(quire_cluster: Cluster) -> None:
    topic = quire_cluster.create_topic() + "-later"
    later = threading.Timer(0.2, lambda: [quire_cluster.produce(topic, value) for value in ("a", "b")])
    later.start()
    assert [record.value for record in quire_cluster.read_all(topic, at_least=2)] == [b"a", b"b"]
    later.join()
    with pytest.raises(ClusterError, match=r"waited 2 s for 3 records in topic .*: there are 2"):
        quire_cluster.read_all(topic, at_least=3, timeout_s=2)


def test_a_time_out_in_the_middle_of_a_read_is_one_like_any_other(quire_cluster: Cluster) -> None:
    topic = quire_cluster.create_topic()
    with pytest.raises(ClusterError, match=r"waited 1e-05 s for 3 records in topic .*: (no broker has answered|there)"):
        quire_cluster.read_all(topic, at_least=3, timeout_s=0.00001)


def test_a_read_that_the_deadline_cuts_short_says_what_was_there_before(
    quire_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = quire_cluster.create_topic()
    outcomes = iter([list[Record]()])

    def read(*_: object, **__: object) -> list[Record]:
        for outcome in outcomes:
            return outcome
        raise TimedOutError("there was no response within 0.001 s")

    monkeypatch.setattr(records, "_read_to_the_end", read)
    with pytest.raises(ClusterError, match=r"waited 0\.1 s for a record in topic .*: there are 0"):
        quire_cluster.read_all(topic, at_least=1, timeout_s=0.1)


def test_only_committed_records_are_read_unless_asked_for(quire_cluster: Cluster) -> None:
    topic = quire_cluster.create_topic()
    producer = Producer({"bootstrap.servers": quire_cluster.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    for value, end in (("aborted", producer.abort_transaction), ("committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(PATIENCE_S)
        end(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush(PATIENCE_S)
    assert [record.value for record in quire_cluster.read_all(topic)] == [b"committed"]
    everything = quire_cluster.read_all(topic, read_committed=False)
    assert [record.value for record in everything] == [b"aborted", b"committed", b"open"]
    producer.abort_transaction(PATIENCE_S)


def test_another_client_reads_what_a_helper_wrote(quire_cluster: Cluster) -> None:
    topic = quire_cluster.create_topic()
    quire_cluster.produce(topic, ("k", "v"), headers=[("h", b"1")])
    consumer = Consumer(
        {
            "bootstrap.servers": quire_cluster.bootstrap_servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE_S)
    assert (message.key(), message.value(), message.headers()) == (b"k", b"v", [("h", b"1")])
    consumer.close()


def test_unwritable_and_unreadable_values_are_refused_with_a_sentence(quire_cluster: Cluster) -> None:
    topic = quire_cluster.create_topic()
    with pytest.raises(TypeError, match="bytes, str or None, not dict; encode"):
        quire_cluster.produce(topic, {"a": 1})  # type: ignore[arg-type]
    quire_cluster.produce(topic, json.dumps({"a": 1}))
    with pytest.raises(TypeError, match="not both"):
        quire_cluster.produce(topic, ("k", "v"), key="other")
    with pytest.raises(ClusterError, match="topic 'no-such-topic' does not exist"):
        quire_cluster.read_all("no-such-topic")
    with pytest.raises(ClusterError, match="has no partition 7, only 0 to 0"):
        quire_cluster.read_all(topic, partition=7)


def test_helpers_say_that_the_cluster_is_killed_or_paused() -> None:
    with Cluster() as cluster:
        cluster.produce("orders", "one")
        cluster.pause()
        with pytest.raises(ClusterError, match=r"paused; call resume\(\) first"):
            cluster.read_all("orders")
        cluster.resume()
        cluster.kill()
        with pytest.raises(ClusterError, match=r"call restart\(\) first"):
            cluster.read_all("orders")
        cluster.restart()
        assert [record.value for record in cluster.read_all("orders")] == [b"one"]
