"""The programs in examples/ do what they say, also when they are killed."""

from quire.testing import WireConnection
from tests.free_ports import free_port
from tests.wire.clients import Confluent, Message, eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw_offsets import committed
from tests.wire.readers import read_confluent
from tests.wire.running_example import RunningExample


def write(bootstrap: str, topic: str, *values: bytes) -> None:
    Confluent().produce(bootstrap, topic, [Message(value) for value in values])


def test_the_at_least_once_consumer_goes_on_where_it_stopped(
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


def test_the_copier_can_be_stopped_while_there_is_no_broker() -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    with RunningExample("exactly_once_copy.py", "a", "b", "--name", "c", "--bootstrap-servers", nowhere) as copier:
        assert "Connection refused" in copier.complaint()
        copier.terminate()


def test_a_topic_that_is_not_there_is_one_sentence(bootstrap: str, new_group: NewName) -> None:
    arguments = ("--group", new_group(), "--bootstrap-servers", bootstrap)
    with RunningExample("at_least_once_consumer.py", "nobody-made-it", *arguments) as consumer:
        assert consumer.complaint().startswith("cannot go on: Subscribed topic not available: nobody-made-it")
        eventually(consumer.has_ended)
