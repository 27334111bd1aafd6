"""Fetch sessions: epochs on both sides, only changes in responses, a bounded cache."""

import pytest

from quire.node.fetch_sessions import FetchPartition, FetchSessions
from quire.protocol.errors import ApiError, ErrorCode
from simulator.random import SimRandom

TOPIC_ID = bytes(15) + b"\x07"


def wanted(index: int, offset: int = 0) -> FetchPartition:
    return FetchPartition(TOPIC_ID, "", index, offset, 1000)


def sessions(limit: int = 10) -> FetchSessions:
    return FetchSessions(limit, SimRandom(1))


def test_a_session_continues_with_the_next_epoch() -> None:
    cache = sessions()
    session = cache.open(0, True, [wanted(0), wanted(1)], now_ms=0)
    assert session is not None
    for epoch in (1, 2, 3):
        assert cache.resume(session.id, epoch, True, now_ms=1) is session


def test_a_repeated_epoch_makes_the_client_start_over() -> None:
    cache = sessions()
    session = cache.open(0, True, [wanted(0)], now_ms=0)
    assert session is not None
    cache.resume(session.id, 1, True, now_ms=1)
    with pytest.raises(ApiError) as refused:
        cache.resume(session.id, 1, True, now_ms=2)
    assert refused.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_an_unknown_session_gets_the_error_for_it() -> None:
    with pytest.raises(ApiError) as refused:
        sessions().resume(77, 1, True, now_ms=0)
    assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_names_and_ids_do_not_mix_in_one_session() -> None:
    cache = sessions()
    session = cache.open(0, True, [wanted(0)], now_ms=0)
    assert session is not None
    with pytest.raises(ApiError) as refused:
        cache.resume(session.id, 1, False, now_ms=0)
    assert refused.value.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_partitions_are_added_changed_and_forgotten() -> None:
    cache = sessions()
    session = cache.open(0, True, [wanted(0), wanted(1)], now_ms=0)
    assert session is not None
    session.update([wanted(1, offset=50), wanted(2)], [(TOPIC_ID, "", 0)])
    assert [(p.index, p.fetch_offset) for p in session.partitions.values()] == [(1, 50), (2, 0)]


def test_a_served_partition_goes_to_the_end_of_the_queue() -> None:
    cache = sessions()
    session = cache.open(0, True, [wanted(0), wanted(1), wanted(2)], now_ms=0)
    assert session is not None
    session.rotate([wanted(0)])
    assert [p.index for p in session.partitions.values()] == [1, 2, 0]


def test_a_partition_is_in_the_response_when_data_or_a_watermark_is_new() -> None:
    partition = wanted(0)
    assert partition.has_news(5, 0, has_data_or_error=False)
    assert not partition.has_news(5, 0, has_data_or_error=False)
    assert partition.has_news(6, 0, has_data_or_error=False)
    assert partition.has_news(6, 1, has_data_or_error=False)
    assert partition.has_news(6, 1, has_data_or_error=True)


def test_a_full_cache_answers_without_a_session_until_one_falls_idle() -> None:
    cache = sessions(limit=1)
    first = cache.open(0, True, [wanted(0)], now_ms=0)
    assert first is not None
    assert cache.open(0, True, [wanted(0)], now_ms=119_000) is None
    second = cache.open(0, True, [wanted(0)], now_ms=121_000)
    assert second is not None and len(cache) == 1


def test_a_new_full_fetch_replaces_the_clients_old_session() -> None:
    cache = sessions()
    old = cache.open(0, True, [wanted(0)], now_ms=0)
    assert old is not None
    cache.open(old.id, True, [wanted(0)], now_ms=0)
    assert len(cache) == 1


def test_a_session_that_grows_without_limit_is_ended() -> None:
    cache = sessions()
    session = cache.open(0, True, [wanted(0)], now_ms=0)
    assert session is not None
    cache.update(session, map(wanted, range(1, 20_000)), [])
    with pytest.raises(ApiError) as refused:
        cache.update(session, [wanted(20_000)], [])
    assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(cache) == 0


def test_a_client_with_too_many_partitions_is_answered_without_a_session() -> None:
    assert sessions().open(0, True, [wanted(index) for index in range(20_001)], now_ms=0) is None


def test_all_sessions_together_remember_a_limited_number_of_partitions_until_one_is_idle() -> None:
    cache = sessions(limit=1000)
    many = [wanted(index) for index in range(20_000)]
    opened = [cache.open(0, True, many, now_ms=index) for index in range(11)]
    assert [session is not None for session in opened] == [True] * 10 + [False]
    first, second = opened[0], opened[1]
    assert first is not None and second is not None
    cache.update(first, [], [partition.key for partition in many[1:]])
    assert cache.open(0, True, many[1:], now_ms=20) is not None, "what was forgotten makes room"
    cache.close(second.id)
    assert cache.open(0, True, many, now_ms=20) is not None
    assert cache.open(0, True, many, now_ms=130_000) is not None, "the idle ones go"
