from hypothesis import given, settings
from hypothesis import strategies as st

from quire.client.fetch_session import EPOCH_MAX, FetchSession, Wanted
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchRequest, FetchResponse
from tests.client.model_fetch_sessions import ModelFetchSessions

A, B, C = (TopicPartition("t", index) for index in range(3))
T, U = b"t" * 16, b"u" * 16


def at(offset: int, topic_id: bytes = T) -> Wanted:
    return Wanted(topic_id, offset, 3, 1000)


def ask(session: FetchSession, wanted: dict[TopicPartition, Wanted]) -> FetchRequest:
    request = FetchRequest()
    session.fill(request, wanted)
    return request


def told(request: FetchRequest) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.topic, part.partition): part.fetch_offset
        for topic in request.topics
        for part in topic.partitions
    }


def forgotten(request: FetchRequest) -> list[TopicPartition]:
    return [TopicPartition(topic.topic, index) for topic in request.forgotten_topics_data for index in topic.partitions]


def begun(wanted: dict[TopicPartition, Wanted]) -> FetchSession:
    session = FetchSession()
    ask(session, wanted)
    session.answered(FetchResponse(session_id=7))
    return session


def test_the_first_fetch_names_everything_and_asks_for_a_session() -> None:
    request = ask(FetchSession(), {A: at(1), B: at(2)})
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert told(request) == {A: 1, B: 2}
    (partition, _) = request.topics[0].partitions
    assert (partition.current_leader_epoch, partition.partition_max_bytes) == (3, 1000)
    assert request.topics[0].topic_id == T


def test_partitions_are_named_in_the_order_given_also_where_topics_alternate() -> None:
    other = TopicPartition("u", 0)
    request = ask(FetchSession(), {A: at(1), C: at(4), other: at(2, U), B: at(3)})
    assert list(told(request)) == [A, C, other, B]
    assert [topic.topic_id for topic in request.topics] == [T, U, T]


def test_later_fetches_name_partitions_that_moved_or_were_added_or_removed() -> None:
    session = begun({A: at(1), B: at(2)})
    request = ask(session, {A: at(1), B: at(5), C: at(0)})
    assert (request.session_id, request.session_epoch) == (7, 1)
    assert (told(request), forgotten(request)) == ({B: 5, C: 0}, [])
    session.answered(FetchResponse(session_id=7))
    request = ask(session, {B: at(5)})
    assert request.session_epoch == 2
    assert (told(request), forgotten(request)) == ({}, [A, C])
    session.answered(FetchResponse(session_id=7))
    assert told(ask(session, {A: at(1), B: at(5)})) == {A: 1}


def test_an_unknown_newer_leader_epoch_is_reported() -> None:
    session = begun({A: at(1)})
    request = ask(session, {A: at(1)._replace(leader_epoch=4)})
    assert told(request) == {A: 1}


def test_a_broker_without_room_for_a_session_gets_full_requests() -> None:
    session = FetchSession()
    for _ in range(3):
        request = ask(session, {A: at(1), B: at(2)})
        assert (request.session_id, request.session_epoch, len(told(request))) == (0, 0, 2)
        session.answered(FetchResponse(session_id=0))


def test_a_broker_that_forgot_the_session_is_asked_for_another() -> None:
    session = begun({A: at(1)})
    ask(session, {A: at(2)})
    assert not session.answered(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    request = ask(session, {A: at(2)})
    assert (request.session_id, request.session_epoch, told(request)) == (0, 0, {A: 2})


def test_a_session_out_of_step_is_replaced() -> None:
    for code in (ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR):
        session = begun({A: at(1), B: at(1)})
        ask(session, {A: at(2)})
        assert not session.answered(FetchResponse(error_code=code))
        request = ask(session, {A: at(2), B: at(1)})
        assert (request.session_id, request.session_epoch, told(request)) == (7, 0, {A: 2, B: 1})


def test_a_lost_response_begins_a_new_session() -> None:
    session = begun({A: at(1)})
    ask(session, {A: at(2)})
    session.lost()
    request = ask(session, {A: at(2)})
    assert (request.session_id, request.session_epoch, told(request)) == (7, 0, {A: 2})


def test_a_refusal_for_another_reason_is_for_the_caller() -> None:
    session = begun({A: at(1)})
    ask(session, {A: at(2)})
    assert session.answered(FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))


def test_a_recreated_topic_begins_a_session() -> None:
    session = begun({A: at(9)})
    request = ask(session, {A: at(0, U)})
    assert (request.session_epoch, told(request), request.topics[0].topic_id) == (0, {A: 0}, U)


def test_epochs_start_over_at_one() -> None:
    session = begun({A: at(1)})
    session._epoch = EPOCH_MAX
    session.answered(FetchResponse(session_id=7))
    assert ask(session, {A: at(1)}).session_epoch == 1


def test_a_goodbye_closes_it() -> None:
    session = begun({A: at(1)})
    assert session.open
    request = session.closing_request()
    assert (request.session_id, request.session_epoch, request.max_wait_ms) == (7, -1, 0)
    assert not session.open


wanted_maps = st.dictionaries(
    st.sampled_from([TopicPartition(name, index) for name in "tu" for index in range(3)]),
    st.builds(lambda offset, topic_id: at(offset, topic_id), st.integers(0, 3), st.sampled_from([T, U])),
)


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(
        st.tuples(wanted_maps, st.sampled_from(["", "", "", "request lost", "answer lost", "evicted", "full"])),
        max_size=20,
    )
)
def test_the_broker_reads_exactly_the_wanted_partitions_through_lost_requests(
    steps: list[tuple[dict[TopicPartition, Wanted], str]],
) -> None:
    broker, session = ModelFetchSessions(), FetchSession()
    for wanted, trouble in steps:
        by_name = {topic_partition.topic: new.topic_id for topic_partition, new in wanted.items()}
        wanted = {
            topic_partition: new._replace(topic_id=by_name[topic_partition.topic])
            for topic_partition, new in wanted.items()
        }
        broker.room = 0 if trouble == "full" else 1000
        if trouble == "evicted":
            broker.sessions.clear()
        request = ask(session, wanted)
        if trouble == "request lost":
            session.lost()
            continue
        code = broker.take(request)
        if code:
            assert trouble == "evicted"
            assert not session.answered(FetchResponse(error_code=code))
            continue
        read = {
            TopicPartition(topic.topic, part.partition): (topic.topic_id, part.fetch_offset)
            for topic in broker.topics(request)
            for part in topic.partitions
        }
        assert read == {topic_partition: (new.topic_id, new.offset) for topic_partition, new in wanted.items()}
        answer = broker.answer(request, [])
        if trouble == "answer lost":
            session.lost()
        else:
            assert session.answered(answer)
