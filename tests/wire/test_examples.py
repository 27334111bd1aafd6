"""The programs in examples/ work, even if they are killed."""

import importlib.util
import time
from collections.abc import Sequence

import pytest
from confluent_kafka import KafkaError, KafkaException

from quire.testing import Cluster, WireConnection
from tests.free_ports import free_port
from tests.wire.clients import Confluent, Message, eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw_offsets import committed
from tests.wire.readers import read_confluent
from tests.wire.running_example import EXAMPLES, RunningExample


def write(bootstrap: str, topic: str, *values: bytes) -> None:
    Confluent().produce(bootstrap, topic, [Message(value) for value in values])


def test_the_at_least_once_consumer_continues_where_it_stopped(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    arguments = ("at_least_once_consumer.py", topic, "--group", group, "--bootstrap-servers", bootstrap)
    write(bootstrap, topic, b"one", b"two")
    with RunningExample(*arguments) as consumer:
        assert consumer.lines(2) == [f"{topic}-0 0: one", f"{topic}-0 1: two"]
        consumer.stop()
    assert committed(connection, group, topic).committed_offset == 2
    write(bootstrap, topic, b"three")
    with RunningExample(*arguments) as consumer:
        assert consumer.lines(1) == [f"{topic}-0 2: three"]
        consumer.stop()


def test_the_at_least_once_consumer_does_not_pass_over_what_it_failed_to_handle(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    arguments = ("at_least_once_consumer.py", topic, "--group", group, "--bootstrap-servers", bootstrap)
    write(bootstrap, topic, b"one", b"\xff is no text", b"three")
    for printed in ([f"{topic}-0 0: one"], []):
        with RunningExample(*arguments) as consumer:
            assert consumer.lines(len(printed)) == printed
            eventually(consumer.has_ended)
        assert committed(connection, group, topic).committed_offset == 1


def test_the_copier_copies_every_record_once(
    bootstrap: str, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    source, sink, name = make_topic(2), make_topic(), new_transactional_id()
    arguments = ("exactly_once_copy.py", source, sink, "--name", name, "--bootstrap-servers", bootstrap)
    expected: list[bytes] = []
    for number in range(3):
        words = [b"word %d of %d" % (word, number) for word in range(700)]
        expected.extend(word.upper() for word in words)
        Confluent().produce(bootstrap, source, [Message(word) for word in words], partition=number % 2)
        with RunningExample(*arguments) as copier:
            eventually(lambda: sorted(read_confluent(bootstrap, sink)) == sorted(expected))
            if number == 0:
                copier.kill()
            else:
                copier.stop()


def test_the_copier_can_be_stopped_while_no_broker_runs() -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    with RunningExample("exactly_once_copy.py", "a", "b", "--name", "c", "--bootstrap-servers", nowhere) as copier:
        assert "Connection refused" in copier.complaint()
        copier.terminate()


@pytest.mark.parametrize(
    "arguments", [("at_least_once_consumer.py", "a", "--group", "b"), ("exactly_once_copy.py", "a", "b", "--name", "c")]
)
def test_an_example_waits_for_its_broker_in_few_words(arguments: Sequence[str]) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    with RunningExample(*arguments, "-b", nowhere) as example:
        said = [example.complaint()]
        first_s = time.monotonic()
        while time.monotonic() < first_s + 1 and len(said) < 6:
            said.append(example.complaint())
        assert time.monotonic() >= first_s + 1, f"librdkafka complains without a pause: {said}"
        example.terminate()


def test_the_consumer_continues_when_its_only_broker_was_restarted() -> None:
    with Cluster() as cluster:
        topic = cluster.create_topic()
        cluster.produce(topic, "one")
        with RunningExample(
            "at_least_once_consumer.py", topic, "--group", "g", "-b", cluster.bootstrap_servers
        ) as reader:
            assert reader.lines(1) == [f"{topic}-0 0: one"]
            cluster.kill()
            assert reader.complaint()
            cluster.restart()
            cluster.produce(topic, "two")
            assert reader.lines(1) == [f"{topic}-0 1: two"]
            reader.terminate()


def test_the_consumer_reports_a_topic_that_is_missing_and_reads_it_once_it_exists(
    bootstrap: str, new_group: NewName
) -> None:
    topic = group = new_group()
    arguments = ("at_least_once_consumer.py", topic, "--group", group, "--bootstrap-servers", bootstrap)
    with RunningExample(*arguments) as consumer:
        assert consumer.complaint().startswith(f"continuing after: Subscribed topic not available: {topic}")
        write(bootstrap, topic, b"one")
        assert consumer.lines(1) == [f"{topic}-0 0: one"]
        consumer.stop()


def test_the_copier_reports_a_topic_that_is_missing_and_copies_it_once_it_exists(
    bootstrap: str, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    source, sink = new_transactional_id(), make_topic()
    arguments = ("exactly_once_copy.py", source, sink, "--name", source, "--bootstrap-servers", bootstrap)
    with RunningExample(*arguments) as copier:
        assert copier.complaint().startswith(f"continuing after: Subscribed topic not available: {source}")
        write(bootstrap, source, b"one")
        eventually(lambda: read_confluent(bootstrap, sink) == [b"ONE"])
        copier.stop()


@pytest.mark.parametrize("name", ["at_least_once_consumer", "exactly_once_copy"])
def test_only_a_fatal_error_ends_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.end_if_fatal(KafkaError(KafkaError._ALL_BROKERS_DOWN, "all brokers are down"))
    assert capsys.readouterr().err == "continuing after: all brokers are down\n"
    with pytest.raises(KafkaException, match="fenced"):
        example.end_if_fatal(KafkaError(KafkaError._FENCED, "fenced", fatal=True))
