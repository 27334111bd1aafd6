"""Log lines that clients can cause: a few of each kind per minute, and all are counted."""

import logging

import pytest

from quire.throttled_log import FEW, KINDS, PERIOD_MS, ThrottledLog
from simulator.clock import SimClock


def test_the_first_few_of_a_kind_are_logged_and_the_others_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = SimClock()
    log = ThrottledLog(logging.getLogger("quire.test"), clock)
    for i in range(1000):
        log.warning("client %d is bad", i)
    assert [record.getMessage() for record in caplog.records] == [f"client {i} is bad" for i in range(FEW)]
    caplog.clear()
    clock.run_for(PERIOD_MS)
    assert caplog.messages == ["995 more lines like this were left out in the last minute: client %d is bad"]
    log.warning("client %d is bad", 1000)
    assert caplog.messages[1:] == ["client 1000 is bad"]


def test_kinds_do_not_silence_each_other(caplog: pytest.LogCaptureFixture) -> None:
    log = ThrottledLog(logging.getLogger("quire.test"), SimClock())
    for kind in ("one", "two"):
        for _ in range(100):
            log.warning("bad: %s", kind, kind=kind)
    log.error("worse")
    assert caplog.messages == ["bad: one"] * FEW + ["bad: two"] * FEW + ["worse"]


def test_a_rare_sender_is_never_left_out(caplog: pytest.LogCaptureFixture) -> None:
    clock = SimClock()
    log = ThrottledLog(logging.getLogger("quire.test"), clock)
    for i in range(20):
        log.warning("client %d is bad", i)
        clock.run_for(PERIOD_MS / FEW)
    assert len(caplog.messages) == 20
    clock.run_for(PERIOD_MS)
    assert len(caplog.messages) == 20


def test_an_exception_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    log = ThrottledLog(logging.getLogger("quire.test"), SimClock())
    for _ in range(FEW + 1):
        try:
            raise RuntimeError("a bug")
        except RuntimeError:
            log.exception("failed")
    assert len(caplog.records) == FEW
    assert all(record.exc_info is not None and record.exc_info[0] is RuntimeError for record in caplog.records)


def test_kinds_that_clients_make_up_are_one_when_there_are_many(caplog: pytest.LogCaptureFixture) -> None:
    clock = SimClock()
    log = ThrottledLog(logging.getLogger("quire.test"), clock)
    for _ in range(3):
        caplog.clear()
        for i in range(10_000):
            log.warning("bad: %d", i, kind=f"bad: {i}")
        assert len(caplog.messages) == KINDS + FEW
        clock.run_for(PERIOD_MS)
        assert caplog.messages[-1].startswith(f"{10_000 - KINDS - FEW} more lines")


def test_a_log_may_have_one_line_of_each_kind(caplog: pytest.LogCaptureFixture) -> None:
    clock = SimClock()
    log = ThrottledLog(logging.getLogger("quire.test"), clock, few=1)
    with caplog.at_level(logging.INFO, "quire.test"):
        for i in range(10):
            log.info("client %d is late", i)
    assert caplog.messages == ["client 0 is late"]
    clock.run_for(PERIOD_MS)
    assert caplog.messages[1:] == ["9 more lines like this were left out in the last minute: client %d is late"]
