"""Incremental fetch sessions (KIP-227): only changes are requested and returned."""

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from quire.testing import WireConnection
from tests.wire.batches import batch
from tests.wire.conftest import MakeTopic
from tests.wire.raw import MEGABYTE, produce, records_of, topic_metadata

FINAL_EPOCH = -1


class Session:
    """A consumer's side of a session over one topic, by id."""

    def __init__(self, connection: WireConnection, topic: str) -> None:
        self.connection = connection
        self.topic_id = topic_metadata(connection, topic).topic_id
        self.session_id = 0
        self.epoch = 0

    def fetch(self, offsets: dict[int, int], *, forget: tuple[int, ...] = (), version: int = 17) -> FetchResponse:
        asked = [
            FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=MEGABYTE)
            for partition, offset in offsets.items()
        ]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[FetchTopic(topic_id=self.topic_id, partitions=asked)] if asked else [],
            forgotten_topics_data=[ForgottenTopic(topic_id=self.topic_id, partitions=list(forget))] if forget else [],
        )
        answer = self.connection.call(request, version, FetchResponse)
        if answer.error_code == ErrorCode.NONE:
            self.session_id = answer.session_id
            self.epoch += 1
        return answer

    def answered(self, offsets: dict[int, int], **more: tuple[int, ...]) -> dict[int, int]:
        """Partition -> bytes of records, of the partitions that the answer mentions."""
        answer = self.fetch(offsets, **more)  # type: ignore[arg-type]
        assert answer.error_code == ErrorCode.NONE
        return {p.partition_index: len(records_of(p)) for found in answer.responses for p in found.partitions}


def test_a_full_fetch_opens_a_session_and_mentions_every_partition(
    connection: WireConnection, make_topic: MakeTopic
) -> None:
    session = Session(connection, make_topic(partitions=3))
    assert session.answered({0: 0, 1: 0, 2: 0}) == {0: 0, 1: 0, 2: 0}
    assert session.session_id > 0


def test_only_changed_partitions_are_mentioned(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    session = Session(connection, topic)
    session.fetch({0: 0, 1: 0, 2: 0})
    assert session.answered({}) == {}
    produce(connection, topic, batch(), partition=1)
    assert session.answered({}) == {1: len(batch())}
    assert session.answered({1: 1}) == {}
    produce(connection, topic, batch(), partition=2)
    assert session.answered({}) == {2: len(batch())}


def test_a_partition_with_data_is_mentioned_until_the_reader_moves_on(
    connection: WireConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    produce(connection, topic, batch(), partition=0)
    session = Session(connection, topic)
    assert session.answered({0: 0, 1: 0}) == {0: len(batch()), 1: 0}
    assert session.answered({}) == {0: len(batch())}
    assert session.answered({0: 1}) == {}


def test_partitions_join_and_leave_a_session(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    for partition in range(3):
        produce(connection, topic, batch(), partition=partition)
    session = Session(connection, topic)
    assert session.answered({0: 0}) == {0: len(batch())}
    assert session.answered({2: 0}) == {0: len(batch()), 2: len(batch())}
    assert session.answered({}, forget=(0,)) == {2: len(batch())}
    assert session.answered({}, forget=(2,)) == {}


def test_a_wrong_epoch_is_refused_and_the_session_continues(connection: WireConnection, make_topic: MakeTopic) -> None:
    session = Session(connection, make_topic())
    session.fetch({0: 0})
    session.epoch = 7
    assert session.fetch({}).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    session.epoch = 1
    assert session.fetch({}).error_code == ErrorCode.NONE


def test_an_unknown_session_gets_the_error_for_it(connection: WireConnection, make_topic: MakeTopic) -> None:
    session = Session(connection, make_topic())
    session.session_id, session.epoch = 55, 4
    answer = session.fetch({0: 0})
    assert (answer.error_code, answer.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert answer.responses == []


def test_a_session_is_closed_with_a_last_full_fetch(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    produce(connection, topic, batch())
    session = Session(connection, topic)
    session.fetch({0: 0})
    session_id, session.epoch = session.session_id, FINAL_EPOCH
    answer = session.fetch({0: 0})
    assert (answer.error_code, answer.session_id) == (ErrorCode.NONE, 0)
    assert records_of(answer.responses[0].partitions[0])
    session.session_id, session.epoch = session_id, 2
    assert session.fetch({}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_full_fetch_replaces_the_session(connection: WireConnection, make_topic: MakeTopic) -> None:
    session = Session(connection, make_topic(partitions=2))
    session.fetch({0: 0})
    first = session.session_id
    session.epoch = 0
    assert session.answered({1: 0}) == {1: 0}
    assert session.session_id not in (0, first)


def test_a_session_by_names_is_not_continued_by_ids(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MEGABYTE)
    request = FetchRequest(session_epoch=0, topics=[FetchTopic(topic=topic, partitions=[asked])])
    opened = connection.call(request, 12, FetchResponse)
    session = Session(connection, topic)
    session.session_id, session.epoch = opened.session_id, 1
    assert session.fetch({0: 0}).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_an_error_of_a_partition_is_mentioned_again_and_again(
    connection: WireConnection, make_topic: MakeTopic
) -> None:
    session = Session(connection, make_topic())
    session.topic_id = b"0123456789abcdef"
    for _ in range(3):
        answer = session.fetch({0: 0} if session.epoch == 0 else {})
        assert answer.error_code == ErrorCode.NONE
        assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_session_outlives_its_connection(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with WireConnection(bootstrap) as first:
        session = Session(first, topic)
        session.fetch({0: 0})
    with WireConnection(bootstrap) as second:
        session.connection = second
        produce(second, topic, batch())
        assert session.answered({}) == {0: len(batch())}
