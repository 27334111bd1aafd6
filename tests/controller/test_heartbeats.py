"""The sessions of brokers, and who has read that a broker stops."""

from math import inf

from quire.controller.heartbeats import Heartbeats

TIMEOUT_MS = 9000


def test_a_session_lasts_from_the_last_heartbeat_on() -> None:
    heartbeats = Heartbeats(TIMEOUT_MS)
    assert heartbeats.next_expiry_ms == inf
    heartbeats.heard(2, epoch=5, now_ms=0)
    heartbeats.heard(1, epoch=6, now_ms=50)
    heartbeats.heard(2, epoch=5, now_ms=100)
    assert heartbeats.next_expiry_ms == 50 + TIMEOUT_MS
    assert heartbeats.silent(49 + TIMEOUT_MS) == []
    assert heartbeats.silent(50 + TIMEOUT_MS) == [1]
    assert heartbeats.silent(100 + TIMEOUT_MS) == [1, 2]
    assert heartbeats.is_alive(2, 5, 99 + TIMEOUT_MS) and not heartbeats.is_alive(2, 5, 100 + TIMEOUT_MS)


def test_a_session_belongs_to_one_registration() -> None:
    heartbeats = Heartbeats(TIMEOUT_MS)
    heartbeats.heard(1, epoch=5, now_ms=0, metadata_offset=70)
    heartbeats.start_shutdown(1, epoch=5, offset=80)
    heartbeats.heard(1, epoch=90, now_ms=10)
    assert not heartbeats.is_alive(1, 5, 10) and heartbeats.is_alive(1, 90, 10)
    assert heartbeats.others_know_of_shutdown(1, {1}), "the new registration does not stop"


def test_sessions_are_renewed_after_the_controller_was_paused() -> None:
    heartbeats = Heartbeats(TIMEOUT_MS)
    heartbeats.heard(1, epoch=5, now_ms=0)
    heartbeats.renew(TIMEOUT_MS)
    assert heartbeats.silent(TIMEOUT_MS) == []


def test_a_forgotten_broker_has_no_session() -> None:
    heartbeats = Heartbeats(TIMEOUT_MS)
    heartbeats.heard(1, epoch=5, now_ms=0)
    heartbeats.heard(2, epoch=6, now_ms=0)
    heartbeats.forget(1)
    assert heartbeats.silent(TIMEOUT_MS) == [2]
    heartbeats.clear()
    assert heartbeats.silent(TIMEOUT_MS) == []


def stopping() -> Heartbeats:
    """Broker 1 stops; its leaderships have moved with the record before offset 80."""
    heartbeats = Heartbeats(TIMEOUT_MS)
    for broker_id in (1, 2, 3):
        heartbeats.heard(broker_id, epoch=broker_id, now_ms=0, metadata_offset=70)
    heartbeats.start_shutdown(1, epoch=1, offset=80)
    return heartbeats


def test_a_broker_stops_when_the_other_active_brokers_have_read_of_it() -> None:
    heartbeats = stopping()
    heartbeats.heard(2, epoch=2, now_ms=1, metadata_offset=80)
    assert not heartbeats.others_know_of_shutdown(1, {1, 2, 3}), "broker 3 has not read it"
    assert heartbeats.others_know_of_shutdown(1, {1, 2}), "broker 3 is fenced"
    heartbeats.heard(3, epoch=3, now_ms=1, metadata_offset=81)
    assert heartbeats.others_know_of_shutdown(1, {1, 2, 3})


def test_a_late_heartbeat_does_not_take_back_what_a_broker_has_read() -> None:
    heartbeats = stopping()
    heartbeats.heard(2, epoch=2, now_ms=1, metadata_offset=80)
    heartbeats.heard(2, epoch=2, now_ms=2, metadata_offset=75)
    assert heartbeats.others_know_of_shutdown(1, {2})


def test_the_shutdown_of_an_earlier_registration_does_not_count() -> None:
    heartbeats = Heartbeats(TIMEOUT_MS)
    heartbeats.heard(1, epoch=5, now_ms=0)
    heartbeats.heard(2, epoch=6, now_ms=0)
    heartbeats.start_shutdown(1, epoch=4, offset=80)
    assert heartbeats.others_know_of_shutdown(1, {2})
