"""Committed offsets as applications use them: the next consumer continues where the last one stopped."""

from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from quire.testing import Proxy, WireConnection
from tests.wire.clients import WAIT_S, Confluent, Message, eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.group_members import MEMBERS, member, wait_until_shared_out
from tests.wire.raw_offsets import commit, committed

METADATA = "said by the one who committed"


class ConfluentOffsets:
    """How a client commits and fetches offsets; each function runs in the member's thread."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def commit(self, topic: str, offset: int, metadata: str = "") -> Any:
        partition = TopicPartition(topic, 0, offset, metadata)
        (done,) = self._consumer.commit(offsets=[partition], asynchronous=False)
        assert done.error is None

    def committed(self, topic: str) -> Any:
        (found,) = self._consumer.committed([TopicPartition(topic, 0)], timeout=WAIT_S)
        return found.offset


class KafkaPythonOffsets:
    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def commit(self, topic: str, offset: int, metadata: str = "") -> Any:
        self._consumer.commit({kafka.TopicPartition(topic, 0): kafka.OffsetAndMetadata(offset, metadata, -1)})

    def committed(self, topic: str) -> Any:
        return self._consumer.committed(kafka.TopicPartition(topic, 0))


class AiokafkaOffsets:
    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    async def commit(self, topic: str, offset: int, metadata: str = "") -> Any:
        partition = aiokafka.TopicPartition(topic, 0)
        await self._consumer.commit({partition: (offset, metadata)})

    async def committed(self, topic: str) -> Any:
        return await self._consumer.committed(aiokafka.TopicPartition(topic, 0))


OFFSETS: dict[str, Any] = {
    "confluent-kafka": ConfluentOffsets,
    "kafka-python": KafkaPythonOffsets,
    "aiokafka": AiokafkaOffsets,
}


def fill(bootstrap: str, topic: str, first: int, end: int) -> None:
    Confluent().produce(bootstrap, topic, [Message(b"%d" % number) for number in range(first, end)])


@pytest.mark.parametrize("client", MEMBERS)
def test_a_consumer_continues_where_the_last_one_committed(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName, client: str
) -> None:
    topic, group = make_topic(), new_group()
    fill(bootstrap, topic, 0, 10)
    with member(bootstrap, group, [topic], client=client) as first:
        eventually(lambda: len(first.received) == 10)
        first.do(lambda consumer: OFFSETS[client](consumer).commit(topic, 7))
    with member(bootstrap, group, [topic], client=client) as second:
        eventually(lambda: second.values() == [b"7", b"8", b"9"])


@pytest.mark.parametrize("client", MEMBERS)
def test_a_committed_offset_is_kept_with_its_metadata(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_group: NewName, client: str
) -> None:
    topic, group = make_topic(), new_group()
    with member(bootstrap, group, [topic], client=client) as one:
        wait_until_shared_out([one], topic, 1)
        one.do(lambda consumer: OFFSETS[client](consumer).commit(topic, 3, METADATA))
        assert one.do(lambda consumer: OFFSETS[client](consumer).committed(topic)) == 3
    found = committed(connection, group, topic)
    assert found.metadata is not None
    sent = found.metadata.removesuffix("\0")  # librdkafka sends the end of its C string too
    assert (found.committed_offset, sent) == (3, METADATA)


@pytest.mark.parametrize("client", MEMBERS)
def test_a_consumer_that_commits_by_itself_loses_nothing_when_it_closes(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName, client: str
) -> None:
    topic, group = make_topic(), new_group()
    fill(bootstrap, topic, 0, 10)
    automatic = "enable.auto.commit" if client == "confluent-kafka" else "enable_auto_commit"
    with member(bootstrap, group, [topic], client=client, **{automatic: True}) as first:
        eventually(lambda: len(first.received) == 10)
    fill(bootstrap, topic, 10, 12)
    with member(bootstrap, group, [topic], client=client) as second:
        eventually(lambda: second.values() == [b"10", b"11"])


def test_partitions_that_move_are_read_on_from_what_was_committed(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    """Each member commits its position before the partition is revoked, so nothing is read twice."""
    topic, group = make_topic(4), new_group()
    automatic: dict[str, Any] = {"enable.auto.commit": True, "auto.commit.interval.ms": 100_000}
    for partition in range(4):
        Confluent().produce(bootstrap, topic, [Message(b"%d" % n) for n in range(10)], partition=partition)
    with member(bootstrap, group, [topic], **automatic) as first:
        eventually(lambda: len(first.received) == 40)
        with member(bootstrap, group, [topic], **automatic) as second:
            wait_until_shared_out([first, second], topic, 4)
            for partition in range(4):
                Confluent().produce(bootstrap, topic, [Message(b"new")], partition=partition)
            eventually(lambda: len(first.received) + len(second.received) >= 44)
            assert [got.value for got in [*first.received[40:], *second.received]] == [b"new"] * 4


def test_an_asynchronous_commit_calls_back_when_it_is_done(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    told: list[tuple[Any, list[Any]]] = []
    settings: dict[str, Any] = {
        "on_commit": lambda error, partitions: told.append((error, [p.offset for p in partitions]))
    }
    with member(bootstrap, group, [topic], **settings) as one:
        wait_until_shared_out([one], topic, 1)
        partition = TopicPartition(topic, 0, 5)
        one.do(lambda consumer: consumer.commit(offsets=[partition], asynchronous=True))
        eventually(lambda: told == [(None, [5])])


def test_a_commit_that_gets_lost_on_the_way_is_tried_again(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    with Proxy(bootstrap) as proxy, member(proxy.address, group, [topic]) as one:
        wait_until_shared_out([one], topic, 1)
        proxy.lose_answers("OffsetCommit", 1)
        try:
            one.do(lambda consumer: ConfluentOffsets(consumer).commit(topic, 5))
        except KafkaException:  # some versions of librdkafka leave this to the application
            one.do(lambda consumer: ConfluentOffsets(consumer).commit(topic, 5))
        assert proxy.lost["OffsetCommit"] == 1
    assert committed(connection, group, topic).committed_offset == 5


def test_offsets_of_an_unknown_partition_are_refused(bootstrap: str, make_topic: MakeTopic, new_group: NewName) -> None:
    topic, group = make_topic(), new_group()
    with member(bootstrap, group, [topic]) as one:
        wait_until_shared_out([one], topic, 1)
        with pytest.raises(KafkaException) as refused:
            one.do(lambda consumer: consumer.commit(offsets=[TopicPartition(topic, 9, 1)], asynchronous=False))
        assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_consumer_that_was_left_behind_cannot_commit(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    """A member does not poll for too long, is removed, and polls again when others own its partitions."""
    topic, group = make_topic(), new_group()
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "session.timeout.ms": 1000,
            "max.poll.interval.ms": 1000,
            "heartbeat.interval.ms": 100,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    eventually(lambda: consumer.poll(0.05) is None and len(consumer.assignment()) == 1)
    with member(bootstrap, group, [topic]) as other:
        wait_until_shared_out([other], topic, 1)
        with pytest.raises(KafkaException) as refused:
            consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        assert refused.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
    consumer.close()
    assert committed(connection, group, topic).committed_offset == -1


def test_an_offset_out_of_range_is_reset_as_the_consumer_asked_for(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    fill(bootstrap, topic, 0, 3)
    commit(connection, group, topic, 1000)
    with member(bootstrap, group, [topic]) as one:
        eventually(lambda: one.values() == [b"0", b"1", b"2"])
