"""What closed connections and the outcomes of probes mean for a broker, rule by rule."""

import pytest

from quire.controller.failure_detection import DELAYS_MS, FailureDetection, Probe

SESSION_MS, INTERVAL_MS = 9_000, 2_000


@pytest.fixture
def detection() -> FailureDetection:
    return FailureDetection(session_timeout_ms=SESSION_MS, heartbeat_interval_ms=INTERVAL_MS)


def keeps() -> bool:
    return True


def loses() -> bool:
    return False


def closed(detection: FailureDetection, connection_id: int) -> Probe:
    (probe,) = detection.connection_closed(connection_id)
    return probe


def end(detection: FailureDetection, broker_id: int, now_ms: float = 0, keeps_leaders: bool = True) -> bool:
    """The broker's connection closes, and its listener refuses; whether it is fenced."""
    detection.heard(broker_id, 5, 10 + broker_id, now_ms)
    return detection.probe_refused(closed(detection, 10 + broker_id), now_ms, lambda: keeps_leaders)


def test_a_closed_connection_leads_to_a_probe_at_once(detection: FailureDetection) -> None:
    detection.heard(1, 5, 11, 0)
    probe = closed(detection, 11)
    assert (probe.broker_id, probe.epoch, probe.delay_ms) == (1, 5, 0)
    assert detection.connection_closed(11) == []


def test_only_the_connection_of_the_last_heartbeat_counts(detection: FailureDetection) -> None:
    detection.heard(1, 5, 11, 0)
    detection.heard(1, 5, 12, 2_000)
    assert detection.connection_closed(11) == []
    assert detection.connection_closed(99) == []
    assert closed(detection, 12).broker_id == 1


def test_a_refused_probe_fences(detection: FailureDetection) -> None:
    assert end(detection, 1)


def test_the_outcome_of_a_probe_counts_once(detection: FailureDetection) -> None:
    detection.heard(1, 5, 11, 0)
    probe = closed(detection, 11)
    detection.probe_timed_out(probe)
    assert not detection.probe_refused(probe, 0, keeps)


def test_a_broker_that_accepts_is_probed_after_each_delay_and_then_no_more(detection: FailureDetection) -> None:
    detection.heard(1, 5, 11, 0)
    probe: Probe | None = closed(detection, 11)
    delays = []
    while probe is not None:
        delays.append(probe.delay_ms)
        probe = detection.probe_accepted(probe)
    assert tuple(delays) == DELAYS_MS


def test_a_listener_that_closes_after_the_connection_is_seen_by_the_second_probe(detection: FailureDetection) -> None:
    detection.heard(1, 5, 11, 0)
    again = detection.probe_accepted(closed(detection, 11))
    assert again is not None and detection.probe_refused(again, 20, keeps)


def test_a_heartbeat_on_a_new_connection_ends_the_probe(detection: FailureDetection) -> None:
    detection.heard(1, 5, 11, 0)
    probe = closed(detection, 11)
    detection.heard(1, 5, 12, 1)
    assert not detection.probe_refused(probe, 2, keeps)
    assert detection.probe_accepted(probe) is None


def test_a_refusal_for_an_earlier_registration_says_nothing_about_the_next(detection: FailureDetection) -> None:
    detection.heard(1, 5, 11, 0)
    probe = closed(detection, 11)
    detection.heard(1, 8, 12, 1)
    assert not detection.probe_refused(probe, 2, keeps)


def test_a_broker_that_is_forgotten_is_not_fenced(detection: FailureDetection) -> None:
    detection.heard(1, 5, 11, 0)
    probe = closed(detection, 11)
    detection.forget(1)
    assert not detection.probe_refused(probe, 0, keeps)
    detection.heard(1, 5, 12, 0)
    detection.forget(1)
    assert detection.connection_closed(12) == []


def test_a_new_term_probes_each_broker_and_fences_what_refuses(detection: FailureDetection) -> None:
    probe = detection.term_began(1, 5, 0)
    assert (probe.broker_id, probe.epoch, probe.delay_ms) == (1, 5, 0)
    assert detection.probe_refused(probe, 1, loses)


# --- The safety valve


def test_the_first_broker_is_fenced_even_if_partitions_lose_their_leader(detection: FailureDetection) -> None:
    assert end(detection, 1, keeps_leaders=False)


def test_a_second_broker_within_a_session_is_fenced_only_if_every_partition_keeps_a_leader(
    detection: FailureDetection,
) -> None:
    assert end(detection, 1, now_ms=0)
    assert not end(detection, 2, now_ms=SESSION_MS - 1, keeps_leaders=False)
    assert end(detection, 2, now_ms=SESSION_MS - 1, keeps_leaders=True)
    assert not end(detection, 3, now_ms=SESSION_MS + 1, keeps_leaders=False), "the second counts like the first"


def test_after_a_session_the_next_broker_is_the_first_again(detection: FailureDetection) -> None:
    assert end(detection, 1, now_ms=0)
    assert end(detection, 2, now_ms=SESSION_MS, keeps_leaders=False)


def test_the_same_broker_may_end_twice_within_a_session(detection: FailureDetection) -> None:
    assert end(detection, 1, now_ms=0, keeps_leaders=False)
    assert end(detection, 1, now_ms=1_000, keeps_leaders=False)


def test_a_broker_that_waits_for_its_session_does_not_delay_others(detection: FailureDetection) -> None:
    assert end(detection, 1, now_ms=0)
    assert not end(detection, 2, now_ms=8_000, keeps_leaders=False)
    assert end(detection, 3, now_ms=SESSION_MS, keeps_leaders=False)


def test_a_broker_that_an_earlier_controller_fenced_counts_as_the_first(detection: FailureDetection) -> None:
    detection.was_fenced(1, 0)
    probe = detection.term_began(2, 5, 0)
    assert not detection.probe_refused(probe, 1, loses)
    assert end(detection, 3, now_ms=1, keeps_leaders=True)
    assert end(detection, 2, now_ms=SESSION_MS + 1, keeps_leaders=False)


def test_a_broker_that_was_fenced_before_the_term_may_end_again(detection: FailureDetection) -> None:
    detection.was_fenced(1, 0)
    assert end(detection, 1, now_ms=1, keeps_leaders=False)


# --- A new incarnation


def test_an_incarnation_is_replaced_once_its_connection_has_closed(detection: FailureDetection) -> None:
    detection.heard(1, 5, 11, 0)
    assert not detection.may_be_replaced(1, 5, 1e9)
    probe = closed(detection, 11)
    assert detection.may_be_replaced(1, 5, 0)
    detection.probe_accepted(probe)
    assert detection.may_be_replaced(1, 5, 0), "the new incarnation may be the one that accepts"
    detection.heard(1, 5, 12, 0)
    assert not detection.may_be_replaced(1, 5, 0)


def test_a_broker_that_runs_has_a_heartbeat_interval_to_find_a_new_controller(detection: FailureDetection) -> None:
    detection.term_began(1, 5, 100)
    assert not detection.may_be_replaced(1, 5, 100 + INTERVAL_MS - 1)
    assert detection.may_be_replaced(1, 5, 100 + INTERVAL_MS)
    detection.heard(1, 5, 11, 200)
    assert not detection.may_be_replaced(1, 5, 100 + INTERVAL_MS)


def test_an_incarnation_that_is_not_known_is_not_replaced_by_this_rule(detection: FailureDetection) -> None:
    detection.heard(1, 5, 11, 0)
    closed(detection, 11)
    assert not detection.may_be_replaced(1, 4, 0)
    assert not detection.may_be_replaced(2, 5, 0)
